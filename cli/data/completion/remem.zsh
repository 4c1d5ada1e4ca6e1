#compdef remem
# Completion of remem for zsh, made by 'remem completion zsh'.
#   remem completion zsh > "${fpath[1]}/_remem"
# Only ids and names of scopes are asked of the program; all else stands here.

# Offers ids or names of scopes, under the scope that was typed so far.  _arguments puts options
# of compadd before the kind.
_remem_ask() {
    local kind=$argv[-1]
    argv[-1]=()
    local -a scope values shown
    local -i i=1
    local line word
    while ((++i < _remem_current)); do
        word=$_remem_words[i]
        case $word in
        (--store|--tenant|--profile|--collection|--agent|--session)
            ((i + 1 < _remem_current)) &&
                scope+=("$word" "${${(Q)_remem_words[i+1]}/#\~/$HOME}") ;;
        (--(store|tenant|profile|collection|agent|session)=*)
            scope+=("${word%%=*}" "${${(Q)word#*=}/#\~/$HOME}") ;;
        esac
    done
    for line in "${(@f)$(command "${(Q)_remem_words[1]/#\~/$HOME}" $scope \
        completion --candidates "$kind" -- zsh "${(Q)PREFIX}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  }")
    done
    (( $#values )) || return 1
    compadd "$@" -l -d shown -a values
}

# For free words: the message that zsh would show keeps it from completing options.
_remem_nothing() {
    return 1
}

_remem_commands() {
    local -a commands
    commands=(
@@COMMANDS@@
    )
    _describe -t commands command commands
}

_remem() {
    local curcontext=$curcontext state line
    local -a _remem_words globals
    local -A opt_args
    local -i _remem_current=CURRENT
    _remem_words=("${(@)words}")
    globals=(
@@GLOBALS@@
    )
    _arguments -C -s $globals '1:command:_remem_commands' '*::argument:->argument' && return 0
    [[ $state == argument ]] || return 1
    case $line[1] in
@@CASES@@
    (*) _arguments -s $globals ;;
    esac
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _remem "$@"
else
    compdef _remem remem
fi
