# Completion of remem for bash, made by 'remem completion bash'.
#   remem completion bash > ~/.local/share/bash-completion/completions/remem
# Only ids and names of scopes are asked of the program; all else stands here.

# Sets want to what the value of an option is; empty for an option without a value.
_remem_option() {
    case "$1:$2" in
@@OPTIONS@@
    *) want= ;;
    esac
}

# Sets want to what the argument at a place (from 0) of a command is.
_remem_argument() {
    case "$1:$2" in
@@ARGUMENTS@@
    *) want=text ;;
    esac
}

# Sets words to the options of a command.
_remem_options_of() {
    case "$1" in
@@OPTIONS_OF@@
    *) words= ;;
    esac
}

# Offers ids or names of scopes; what was typed may be quoted.
_remem_ask() {
    local typed=$2 quote='' line
    case $typed in
    [\"\']*) quote=${typed:0:1} typed=${typed:1} ;;
    *) typed=${typed//\\/} ;;
    esac
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        [[ -n $quote ]] || printf -v line %q "$line"
        COMPREPLY+=("$line")
    done < <("$program" ${scope[@]+"${scope[@]}"} completion --candidates "$1" \
        -- bash "$typed" 2>/dev/null)
}

# Offers what the value of an option or an argument may be.
_remem_offer() {
    local kind=$1 typed=$2 before=${3-} i
    case $kind in
    text) ;;
    files) compopt -o default 2>/dev/null ;;
    folders) compopt -o dirnames 2>/dev/null ;;
    ids | collections | agents | sessions) _remem_ask "$kind" "$typed" ;;
    *) COMPREPLY=($(compgen -W "$kind" -- "$typed")) ;;
    esac
    if [[ -n $before ]]; then
        for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=$before${COMPREPLY[i]}; done
    fi
}

_remem() {
    local IFS=$' \t\n'
    local cur=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]/#\~/$HOME}
    local cmd='' want='' words='' word value ended='' place=0 i=1
    local -a scope=()
    COMPREPLY=()
    while ((i < COMP_CWORD)); do
        word=${COMP_WORDS[i]}
        ((i++))
        if [[ -z $ended && $word == -- ]]; then
            ended=1
        elif [[ -z $ended && $word == -?* ]]; then
            value=
            if [[ $word == --*=* ]]; then
                value=${word#*=} word=${word%%=*}
            else
                _remem_option "$cmd" "$word"
                [[ -n $want ]] || continue
                [[ ${COMP_WORDS[i]-} == = ]] && ((i++))
                if ((i >= COMP_CWORD)); then
                    [[ $cur == = ]] && cur=
                    _remem_offer "$want" "$cur"
                    return
                fi
                value=${COMP_WORDS[i]}
                ((i++))
            fi
            case $word in
            --store | --tenant | --profile | --collection | --agent | --session)
                value=${value//[\\\"\']/}
                scope+=("$word" "${value/#\~/$HOME}")
                ;;
            esac
        elif [[ -z $cmd ]]; then
            cmd=$word
        else
            ((place++))
        fi
    done
    if [[ $cur == = && $i -ge 2 ]]; then
        _remem_option "$cmd" "${COMP_WORDS[COMP_CWORD - 1]}"
        [[ -n $want ]] && _remem_offer "$want" ''
    elif [[ -z $ended && $cur == --*=* ]]; then
        _remem_option "$cmd" "${cur%%=*}"
        [[ -n $want ]] && _remem_offer "$want" "${cur#*=}" "${cur%%=*}="
    elif [[ -z $ended && $cur == -* ]]; then
        _remem_options_of "$cmd"
        COMPREPLY=($(compgen -W "$words @@GLOBALS@@" -- "$cur"))
    elif [[ -z $cmd ]]; then
        COMPREPLY=($(compgen -W "@@COMMANDS@@" -- "$cur"))
    else
        _remem_argument "$cmd" "$place"
        _remem_offer "$want" "$cur"
    fi
}

complete -F _remem remem
