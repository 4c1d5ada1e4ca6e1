# Completion of remem for fish, made by 'remem completion fish'.
#   remem completion fish > ~/.config/fish/completions/remem.fish
# Only ids and names of scopes are asked of the program; all else stands here.

# Prints the command and the arguments before the cursor, without options and their values.
function __remem_place
    set -l takes @@TAKES@@
    set -l words (commandline -opc)
    set -l skip 0
    set -l ended 0
    for word in $words[2..-1]
        if test $skip = 1
            set skip 0
        else if test $ended = 0; and string match -qr -- '^-.' $word
            test $word = --; and set ended 1
            contains -- $word $takes; and set skip 1
        else
            printf '%s\n' $word
        end
    end
end

function __remem_no_command
    test (count (__remem_place)) = 0
end

# True inside a command and, when they are given, between two places of its arguments (from 0).
function __remem_in
    set -l place (__remem_place)
    test (count $place) -gt 0; and test $place[1] = $argv[1]; or return 1
    set -q argv[2]; or return 0
    set -l at (math (count $place) - 1)
    test $at -ge $argv[2] -a $at -le $argv[3]
end

# Offers ids or names of scopes, under the scope that was typed so far.
function __remem_ask
    set -l words (commandline -opc)
    set -l scope
    set -l name ''
    for word in $words[2..-1]
        if test -n "$name"
            set -a scope $name (string replace -r '^~' $HOME -- $word)
            set name ''
        else if contains -- $word --store --tenant --profile --collection --agent --session
            set name $word
        else if string match -qr -- '^--(store|tenant|profile|collection|agent|session)=' $word
            set -a scope (string replace -r '=~' "=$HOME" -- $word)
        end
    end
    set -l typed (string replace -r -- '^--[a-z-]+=' '' (commandline -ct))
    command $words[1] $scope completion --candidates $argv[1] -- fish "$typed" 2>/dev/null
end

complete -c remem -f
@@COMPLETE@@
