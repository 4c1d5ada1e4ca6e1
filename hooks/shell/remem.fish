# remem: capture of commands for fish 3.4 and later.  See remem-hook(1) and remem-store(5), SPOOL.
#
# No process is started at a prompt.  A command is appended, once it has ended, to this session's own
# file in the spool of the store; any later remem command takes it in.

status is-interactive; and not set -q __remem_pid; and begin

set -g __remem_pid $fish_pid
set -g __remem_store @STORE@
set -g __remem_seq 0
set -g __remem_part 0
set -g __remem_rows 0
set -g __remem_bytes 0
set -g __remem_at 0
set -g __remem_tty (command tty 2>/dev/null)
# There is no clock among the builtins: the kernel's counter of seconds since boot stands in for it,
# and where there is none the time stamp of a file.
set -g __remem_boot 0
set -g __remem_start (command date +%s%6N 2>/dev/null)
builtin string match -qr '^\d{16}$' -- "$__remem_start"; or set __remem_start (command date +%s 2>/dev/null)000000
if test -r /proc/uptime
    read -l up </proc/uptime
    set __remem_boot (builtin math --scale 0 "$__remem_start - "(builtin string split ' ' -- $up)[1]" * 1000000")
end

# What may be a secret at all; then the shapes: what stays, what goes, what stays behind it.
set -g __remem_maybe @MAYBE@
set -g __remem_pem @PEM@
set -g __remem_shapes \
@SHAPES@

function __remem_now --argument-names folder
    if test $__remem_boot != 0
        read -l up </proc/uptime
        builtin math --scale 0 "$__remem_boot + "(builtin string split ' ' -- $up)[1]" * 1000000"
    else
        set -l clock $folder/remem-0-$fish_pid-0.scratch
        builtin echo >$clock
        builtin echo (builtin path mtime -- $clock)000000
    end
end

# Where a command runs: folder, branch, and whether an ignore marker stands above it.
function __remem_look
    set -g __remem_pwd $PWD
    set -g __remem_head ''
    set -g __remem_ign ''
    set -l d $PWD
    test "$d" = /; and set d ''
    set -l g ''
    while true
        if test -z "$g" -a -e "$d/.git"
            if test -d "$d/.git"
                set g $d/.git
            else if test -f "$d/.git"
                read -l l <$d/.git
                set g (builtin string replace -r '^gitdir: ' '' -- "$l")
                builtin string match -q '/*' -- $g; or set g $d/$g
            end
            if test -f "$g/HEAD"
                read -l l <$g/HEAD
                set __remem_head (builtin string replace -r '^ref: refs/heads/' '' -- "$l")
            end
        end
        if test -f "$d/.rememignore"
            set -l l '*'
            test -s "$d/.rememignore"; and read l <$d/.rememignore
            test "$l" = '*'; and set __remem_ign 1
        end
        test -n "$d"; or break
        set d (builtin string replace -r '/[^/]*$' '' -- $d)
    end
end

# The text without what looks like a secret; fails when it is large and holds one.
function __remem_redact --argument-names c
    if not builtin string match -qr -- $__remem_maybe $c
        builtin string collect -- $c
        return 0
    end
    set -l large (test (builtin string length -- $c) -gt 65536; and builtin echo 1)
    if builtin string match -qr -- $__remem_pem $c
        test -n "$large"; and return 1
        set c (builtin string replace -ra -- "(?s)$__remem_pem.*?(-----END[^-]*-----|\$)" '[redacted:private-key]' $c | builtin string collect)
    end
    for i in $__remem_shapes
        set -l k (builtin string split -m 1 : -- $i)
        builtin string match -qr -- $k[2] $c; or continue
        test -n "$large"; and return 1
        set -l behind (builtin string match -q '*@' -- $k[2]; and builtin echo @)
        set c (builtin string replace -ra -- $k[2] "\$1[redacted:$k[1]]$behind" $c | builtin string collect)
    end
    builtin string collect -- $c
end

# The inside of a JSON string.
function __remem_json --argument-names c
    set -l lines (builtin string split \n -- $c)
    set lines (builtin string replace -a -- '\\' '\\\\' $lines)
    set lines (builtin string replace -a -- '"' '\\"' $lines)
    set c (builtin string join -- '\n' $lines | builtin string collect)
    if builtin string match -qr '[\x01-\x1f]' -- $c
        for h in 0{1,2,3,4,5,6,7,8,9,a,b,c,d,e,f} 1{0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f}
            set c (builtin string replace -a -- (builtin printf "\\x$h" | builtin string collect) "\\u00$h" $c | builtin string collect)
        end
    end
    builtin string collect -- $c
end

# One line at the end of this session's file, which is made with mode 0600.
function __remem_append --argument-names folder line
    if test $__remem_rows -ge 1000 -o $__remem_bytes -ge 1048576
        set __remem_part (builtin math $__remem_part + 1)
        set __remem_rows 0
        set __remem_bytes 0
    end
    set -l file $folder/fish-$__remem_start-$fish_pid-$__remem_part.jsonl
    if not test -f $file
        set -l mask $umask
        set -g umask 0077
        builtin echo -n >>$file
        set -g umask $mask
    end
    test -w $file; or return 0
    builtin printf '%s\n' $line >>$file
    set __remem_rows (builtin math $__remem_rows + 1)
    set __remem_bytes (builtin math $__remem_bytes + (builtin string length -- $line))
    set __remem_seq (builtin math $__remem_seq + 1)
end

function __remem_folder
    set -l store $__remem_store
    set -q REMEM_STORE; and test -n "$REMEM_STORE"; and set store $REMEM_STORE
    set -l folder $store/spool
    builtin string match -q '/*' -- $folder; and test -d $folder; and test -w $folder; and test -O $folder; and builtin echo $folder
end

function __remem_preexec --on-event fish_preexec
    set -l folder (__remem_folder)
    set -g __remem_at 0
    test -n "$folder"; or return 0
    set -g __remem_at (__remem_now $folder)
    __remem_look
end

function __remem_postexec --on-event fish_postexec
    set -l s $status
    set -l took $CMD_DURATION
    test $__remem_at = 0; and return $s
    set -l at $__remem_at
    set -g __remem_at 0
    set -l folder (__remem_folder)
    test -n "$folder"; or return $s
    set -l c $argv[1]
    set -l why ''
    if set -q REMEM_OFF; and test -n "$REMEM_OFF"; and test "$REMEM_OFF" != 0
        set why off
    else if set -q fish_private_mode; and test -n "$fish_private_mode"
        set why private
    else if set -q fish_history; and test -z "$fish_history"
        set why history-off
    else if test -n "$__remem_ign"
        set why ignored
    else if builtin string match -qr '^[ \t]' -- $c; and not set -q REMEM_SPACED
        set why space
    else if builtin functions -q fish_should_add_to_history; and not fish_should_add_to_history $c
        set why history
    else if test (builtin string length -- $c) -gt 8388608
        set why size
    else
        set c (__remem_redact $c | builtin string collect)
        test $pipestatus[1] = 0; or set why secret
    end
    if test -n "$why"
        __remem_append $folder '{"remem":1,"seq":'$__remem_seq',"at":'$at',"skip":"'$why'"}'
        return $s
    end
    __remem_append $folder '{"remem":1,"seq":'$__remem_seq',"at":'$at',"took":'(builtin math $took \* 1000)',"exit":'$s',"cwd":"'(__remem_json $__remem_pwd)'","head":"'(__remem_json $__remem_head)'","tty":"'(__remem_json "$__remem_tty")'","cmd":"'(__remem_json $c)'"}'
    return $s
end

end
