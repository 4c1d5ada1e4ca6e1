# remem: capture of commands for bash 4.4 and later.  See remem-hook(1) and remem-store(5), SPOOL.
#
# No process is started at a prompt.  A command is appended, once it has ended, to this session's own
# file in the spool of the store; any later remem command takes it in.  PS0 marks the start, the first
# element of PROMPT_COMMAND does the rest.  $?, $_ and PIPESTATUS stay as they are.

# An alias would become part of the functions below.
\builtin shopt -q expand_aliases && _remem_aliases=1 || _remem_aliases=
\builtin shopt -u expand_aliases

if [[ $- == *i* && ${_remem_pid-} != "$$" ]] && ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) &&
  # Where somebody has locked the variable, nothing can be put into it.
  ! [[ -v PROMPT_COMMAND && ${PROMPT_COMMAND@a} == *r* ]]; then

_remem_store=@STORE@
_remem_pid=$$
_remem_seq=0 _remem_part=0 _remem_rows=0 _remem_bytes=0
_remem_h= _remem_ts= _remem_last= _remem_bc= _remem_was=
_remem_pwd= _remem_head= _remem_ign= _remem_tty= _remem_name= _remem_scratch=
_remem_t0=0
_remem_x=x _remem_null=/dev/null
_remem_ps0='${_remem_x:$((_remem_t0=1${EPOCHREALTIME//[^0-9]/},1)):0}'
[[ ${EPOCHREALTIME-} ]] || _remem_ps0='${_remem_x:$((_remem_t0=1,1)):0}'
# The redirection keeps what the command line's last simple command was, before the hook becomes it.
# It stands on a line of its own, by which preexec libraries know what belongs to the prompt.
_remem_run=$'{\n_remem_precmd "$_"\n} 2>"${_remem_null%"${_remem_bc:=$BASH_COMMAND}"zz}"'

# What may be a secret at all; then the shapes: what stays, what goes, what stays behind it.
_remem_maybe=@MAYBE@
_remem_pem=@PEM@
_remem_shapes=(
@SHAPES@
)

# Where the next command will run: folder, branch, and whether an ignore marker stands above it.
_remem_look() {
  local _remem_d=$PWD _remem_g= _remem_l=
  _remem_pwd=$PWD _remem_head= _remem_ign=
  while ((1)); do
    if [[ ! $_remem_g && -e $_remem_d/.git ]]; then
      if [[ -d $_remem_d/.git ]]; then
        _remem_g=$_remem_d/.git
      elif [[ -f $_remem_d/.git ]]; then
        \builtin read -r -n 4096 _remem_l < "$_remem_d/.git"
        _remem_g=${_remem_l#gitdir: }
        [[ $_remem_g == /* ]] || _remem_g=$_remem_d/$_remem_g
      fi
      if [[ -f $_remem_g/HEAD ]]; then
        \builtin read -r -n 1024 _remem_l < "$_remem_g/HEAD"
        _remem_head=${_remem_l#ref: refs/heads/}
      fi
    fi
    if [[ -f $_remem_d/.rememignore ]]; then
      if [[ ! -s $_remem_d/.rememignore ]]; then
        _remem_ign=1
      else
        \builtin read -r -n 64 _remem_l < "$_remem_d/.rememignore"
        [[ $_remem_l == '*' ]] && _remem_ign=1
      fi
    fi
    [[ $_remem_d ]] || \builtin break
    _remem_d=${_remem_d%/*}
  done
}

# Whether _remem_c may hold a secret.
_remem_suspect() {
  if ((${#_remem_c} > 4096)); then
    [[ $_remem_c =~ $_remem_maybe ]]
  else
    case $_remem_c in
      @HINTS@) ;;
      *) \builtin return 1 ;;
    esac
  fi
}

# _remem_c without what looks like a secret; fails when it is large and holds one.
_remem_redact() {
  local _remem_i _remem_k _remem_e _remem_m _remem_o _remem_r _remem_n=0
  while [[ $_remem_c =~ $_remem_pem ]]; do
    ((_remem_n++ < 50 && ${#_remem_c} <= 65536)) || \builtin return 1
    _remem_m=${BASH_REMATCH[0]} _remem_r=${_remem_c#*"${BASH_REMATCH[0]}"} _remem_o=
    if [[ $_remem_r == *-----END*-----* ]]; then
      _remem_r=${_remem_r#*-----END}
      _remem_o=${_remem_r#*-----}
    fi
    _remem_c="${_remem_c%%"$_remem_m"*}[redacted:private-key]$_remem_o"
  done
  for _remem_i in "${_remem_shapes[@]}"; do
    _remem_k=${_remem_i%%:*} _remem_e=${_remem_i#*:} _remem_o= _remem_r=$_remem_c
    while [[ $_remem_r =~ $_remem_e ]]; do
      ((_remem_n++ < 50 && ${#_remem_c} <= 65536)) || \builtin return 1
      _remem_m=${BASH_REMATCH[0]}
      _remem_o+="${_remem_r%%"$_remem_m"*}${BASH_REMATCH[1]}[redacted:$_remem_k]"
      _remem_r=${_remem_r#*"$_remem_m"}
      [[ $_remem_e == *@ ]] && _remem_o+=@
    done
    _remem_c=$_remem_o$_remem_r
  done
}

# The lines of _remem_c in the array _remem_a; a here-string would be a file.
_remem_lines() {
  local _remem_r=$_remem_c
  _remem_a=()
  while [[ $_remem_r == *$'\n'* ]]; do
    _remem_a+=("${_remem_r%%$'\n'*}")
    _remem_r=${_remem_r#*$'\n'}
  done
  _remem_a+=("$_remem_r")
}

# _remem_v with every $1 replaced by what the format $2 makes: bash's own replacing takes a time that
# grows with the square of a long line, splitting does not.  No blank may be replaced so.
_remem_sub() {
  local IFS=$1 _remem_p
  \builtin set -f
  _remem_p=(${_remem_v}x)
  \builtin printf -v _remem_v "%s$2" "${_remem_p[@]}"
  \builtin printf -v IFS "x$2"
  _remem_v=${_remem_v%"$IFS"}
}

# _remem_v: lines of the array _remem_a as the inside of a JSON string.
_remem_json() {
  local _remem_i _remem_k _remem_o _remem_b='\' _remem_bb='\\' _remem_q='"' _remem_qq='\"' _remem_e=()
  if [[ "${_remem_a[*]}" == *[$'\001'-$'\037']* ]]; then
    for ((_remem_i = 1; _remem_i < 32; _remem_i++)); do
      \builtin printf -v _remem_o '\\x%02x' "$_remem_i"
      \builtin printf -v _remem_o "$_remem_o"
      [[ "${_remem_a[*]}" == *"$_remem_o"* ]] && _remem_e+=("$_remem_i$_remem_o")
    done
  fi
  for _remem_i in "${!_remem_a[@]}"; do
    _remem_o=${_remem_a[_remem_i]}
    if ((${#_remem_o} > 4096)); then
      _remem_v=$_remem_o
      _remem_sub '\' '\\\\'
      _remem_sub '"' '\\"'
      _remem_o=$_remem_v
    else
      _remem_o=${_remem_o//"$_remem_b"/"$_remem_bb"}
      _remem_o=${_remem_o//"$_remem_q"/"$_remem_qq"}
    fi
    for _remem_k in "${_remem_e[@]}"; do
      \builtin printf -v _remem_v '\\u%04x' "${_remem_k%?}"
      _remem_o=${_remem_o//"${_remem_k: -1}"/"$_remem_v"}
    done
    _remem_a[_remem_i]=$_remem_o
  done
  \builtin printf -v _remem_v '%s\\n' "${_remem_a[@]}"
  _remem_v=${_remem_v%'\n'}
}

# One line at the end of this session's file, which is made with mode 0600 (the one fork there is).
_remem_append() {
  ((_remem_rows >= 1000 || _remem_bytes >= 1048576)) && ((_remem_part++, _remem_rows = 0, _remem_bytes = 0))
  local _remem_f=$_remem_dir/$_remem_name-$_remem_part.jsonl
  [[ -f $_remem_f ]] || (\builtin umask 077 && \builtin : >>"$_remem_f") || \builtin return 0
  \builtin printf '%s\n' "$1" >>"$_remem_f"
  ((_remem_rows++, _remem_bytes += ${#1}, _remem_seq++))
}

# A name for the session, its terminal, and a file in memory through which `history` is read.
_remem_begin() {
  local _remem_l _remem_w _remem_d _remem_i
  [[ $_remem_name ]] || _remem_name=bash-$_remem_now-$$
  if [[ -r /proc/$$/stat ]]; then
    \builtin read -r _remem_l < "/proc/$$/stat"
    _remem_w=(${_remem_l##*) })
    _remem_i=$(((_remem_w[4] & 0xff) | ((_remem_w[4] >> 12) & 0xfff00)))
    _remem_l=$(((_remem_w[4] >> 8) & 0xfff))
    ((_remem_l >= 136 && _remem_l <= 143)) && _remem_tty=/dev/pts/$(((_remem_l - 136) * 256 + _remem_i))
    ((_remem_l == 4)) && _remem_tty=/dev/tty$_remem_i
  fi
  for _remem_d in "${XDG_RUNTIME_DIR-}" "/run/user/$UID" /dev/shm "$_remem_dir"; do
    [[ $_remem_d == /* && -d $_remem_d && -w $_remem_d ]] || \builtin continue
    _remem_scratch=$_remem_d/remem-$UID-$$-$RANDOM$RANDOM.scratch
    (\builtin umask 077 && \builtin set -C && \builtin : > "$_remem_scratch") && \builtin return 0
  done
  _remem_scratch=
}

# What ran last: the entry of the history in _remem_c, its time in _remem_u; fails without one.
_remem_entry() {
  local _remem_l
  [[ -f $_remem_scratch && -O $_remem_scratch && ! -L $_remem_scratch ]] || _remem_begin
  [[ $_remem_scratch ]] || \builtin return 1
  if [[ ${HISTTIMEFORMAT@a} == *r* ]]; then
    \builtin fc -ln -0 -0 >|"$_remem_scratch"  # the form of times is locked: do without, "<tab> words"
  else
    HISTTIMEFORMAT='%s ' \builtin history 1 >|"$_remem_scratch"
  fi
  \builtin mapfile -t _remem_a < "$_remem_scratch"
  \builtin : >|"$_remem_scratch"
  _remem_l=${_remem_a[0]-}
  if [[ $_remem_l == $'\t'* ]]; then
    _remem_l="0 ${_remem_l:2}"
  else
    _remem_l=${_remem_l#"${_remem_l%%[! ]*}"}  # "  12* 1700000000 words": number, time, command
    _remem_l=${_remem_l#*[*\ ]\ }
  fi
  _remem_u=${_remem_l%% *}
  [[ $_remem_l == *' '* && $_remem_u && $_remem_u != *[!0-9]* ]] || \builtin return 1
  _remem_a[0]=${_remem_l#* }
  \builtin printf -v _remem_c '%s\n' "${_remem_a[@]}"
  _remem_c=${_remem_c%$'\n'}
}

# Whether the line that ran is the last of the history once more, which ignoredups leaves out.
_remem_again() {
  [[ :${HISTCONTROL-}: == *:@(ignoredups|ignoreboth|erasedups):* ]] || \builtin return 1
  [[ $_remem_c == "$_remem_last" ]] || \builtin return 1
  [[ :${HISTCONTROL-}: == *:@(ignorespace|ignoreboth):* || ${HISTIGNORE-} ]] || \builtin return 0
  [[ $1 == "$_remem_c" ]]  # it may as well be another one that was left out: compare what ran
}

# Why the command that ran is not captured, in _remem_why; empty when it is.
_remem_judge() {
  _remem_why=
  if [[ ${REMEM_OFF-} && $REMEM_OFF != 0 ]]; then
    _remem_why=off
  elif [[ ! ${HISTFILE-} || $HISTFILE == /dev/null ]]; then
    _remem_why=history-off
  elif [[ $_remem_ign ]]; then
    _remem_why=ignored
  elif ! _remem_entry; then
    _remem_why=history
  elif [[ $HISTCMD == "$_remem_h" ]] && ! {
    [[ :${HISTCONTROL-}: == *:erasedups:* && ($_remem_c != "$_remem_last" || $_remem_u != "$_remem_ts") ]]
  } && ! _remem_again "$1"; then
    _remem_why=history
  elif [[ $_remem_c == [[:blank:]]* && ! ${REMEM_SPACED-} ]]; then
    _remem_why=space
  elif ((${#_remem_c} > 8388608)); then
    _remem_why=size
  else
    _remem_last=${_remem_c::65536} _remem_ts=$_remem_u
    local _remem_m=("${BASH_REMATCH[@]}")
    if _remem_suspect; then
      _remem_u=$_remem_c
      _remem_redact || _remem_why=secret
      [[ $_remem_c == "$_remem_u" ]] || _remem_lines
      _remem_u=$_remem_ts
    fi
    ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 501)) || BASH_REMATCH=("${_remem_m[@]}")
  fi
}

_remem_record() {
  local _remem_c= _remem_u= _remem_v= _remem_why= _remem_a=() _remem_t=$2 _remem_took
  _remem_judge "$3"
  if [[ $_remem_why ]]; then
    _remem_append "{\"remem\":1,\"seq\":$_remem_seq,\"at\":$_remem_now,\"skip\":\"$_remem_why\"}"
    \builtin return
  fi
  if ((${#_remem_t} > 1)); then
    _remem_t=${_remem_t:1} _remem_took=$((_remem_now - ${_remem_t}))
  else
    _remem_t=${_remem_u}000000 _remem_took=null
    ((_remem_u)) || _remem_t=$_remem_now
  fi
  _remem_json; _remem_c=$_remem_v
  _remem_a=("$_remem_was"); _remem_json; _remem_u=$_remem_v
  _remem_a=("$_remem_on"); _remem_json
  _remem_append "{\"remem\":1,\"seq\":$_remem_seq,\"at\":$_remem_t,\"took\":$_remem_took,\"exit\":$1,\"cwd\":\"$_remem_u\",\"head\":\"$_remem_v\",\"tty\":\"$_remem_tty\",\"cmd\":\"$_remem_c\"}"
}

_remem_precmd() {
  local _remem_s=$? _remem_o=$- -
  \builtin set +aefkuvxCET
  local IFS=$' \t\n' _remem_now _remem_b=$_remem_bc _remem_t=$_remem_t0 _remem_was=$_remem_pwd _remem_on=$_remem_head
  # An older BASH_COMPAT would leave quotes in what replaces a character.
  local LC_ALL=C BASH_COMPAT= _remem_e=$_remem_s _remem_dir=${REMEM_STORE:-$_remem_store}/spool
  _remem_bc= _remem_t0=0
  # What ran before the hook, this once, may have changed the status; bash-preexec keeps it.
  [[ ! $_remem_first || ${PROMPT_COMMAND[0]-} == "$_remem_run"* ]] || _remem_e=${__bp_last_ret_value:-null}
  if [[ ${EPOCHREALTIME-} ]]; then
    _remem_now=${EPOCHREALTIME//[!0-9]/}
  else
    \builtin printf -v _remem_now '%(%s)T000000' -1
  fi
  if [[ $_remem_dir == /* && -d $_remem_dir && -w $_remem_dir && -O $_remem_dir ]]; then
    [[ $_remem_name ]] || _remem_begin
    if [[ $_remem_t != 0 || ($PS0 != *"$_remem_ps0"* && $_remem_h && $_remem_h != "$HISTCMD") ]]; then
      _remem_record "$_remem_e" "$_remem_t" "$_remem_b"
    fi
    _remem_h=$HISTCMD
    _remem_look
  else
    _remem_h=$HISTCMD _remem_pwd=$PWD _remem_head= _remem_ign=
  fi
  if \builtin shopt -q promptvars; then
    [[ ${PS0-} == *"$_remem_ps0"* ]] || PS0=${PS0-}$_remem_ps0
  else
    PS0=${PS0//"$_remem_ps0"/}
  fi
  if [[ $_remem_first ]]; then
    # At the first prompt a library may be about to rewrite the variable: leave it the first element.
    [[ $_remem_t == 0 && ${PROMPT_COMMAND[0]-} == *install* ]] || _remem_place
  fi
  # An element of its own need not hand the status on, which would set a trap of ERR off once more.
  [[ $_remem_o == *e* || ($_remem_first && ${PROMPT_COMMAND[0]-} == "$_remem_run") ]] || \builtin return "$_remem_s"
}

# Be the whole first element of PROMPT_COMMAND: what ran earlier could read other histories in, and
# what comes after it in the same element would not find PIPESTATUS.
_remem_place() {
  local _remem_i _remem_p=()
  [[ ${PROMPT_COMMAND[0]-} == "$_remem_run" ]] && \builtin return 0
  for _remem_i in "${PROMPT_COMMAND[@]}"; do
    case $_remem_i in
      "$_remem_run") \builtin continue ;;
      "$_remem_run"*) _remem_i=${_remem_i#"$_remem_run"}; _remem_i=${_remem_i#"${_remem_i%%[!$'; \t\n']*}"} ;;
      *"$_remem_run") _remem_i=${_remem_i%"$_remem_run"} ;;
      *"$_remem_run;"*) _remem_i=${_remem_i/"$_remem_run;"/} ;;
      *"$_remem_run"*) _remem_i=${_remem_i/"$_remem_run"/} ;;
    esac
    _remem_p+=("$_remem_i")
  done
  PROMPT_COMMAND=("$_remem_run" "${_remem_p[@]}")
}

# From bash 5.1 on each element of PROMPT_COMMAND finds $?, $_ and PIPESTATUS as the command left
# them.  Before, and where it is exported and so must stay a string, the hook is its first line.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)) &&
  ! [[ -v PROMPT_COMMAND && ${PROMPT_COMMAND@a} == *x* ]]; then
  _remem_first=1
  [[ ${PROMPT_COMMAND[*]-} == *"$_remem_run"* ]] ||
    PROMPT_COMMAND[0]=$_remem_run${PROMPT_COMMAND[0]:+$'\n'${PROMPT_COMMAND[0]}}
else
  _remem_first=
  _remem_pc=_remem_precmd
  [[ ${PROMPT_COMMAND-} == *_remem_pc* ]] ||
    PROMPT_COMMAND='"${_remem_pc-:}" "$_"'${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
fi

fi

[[ $_remem_aliases ]] && \builtin shopt -s expand_aliases
\builtin unset _remem_aliases
