# remem: capture of commands for zsh 5.3 and later.  See remem-hook(1) and remem-store(5), SPOOL.
#
# No process is started at a prompt.  A command is appended, once it has ended, to this session's own
# file in the spool of the store; any later remem command takes it in.

# Aliases and the options of other shells would change what the functions below say.
_remem_opts=()
[[ ! -o 'aliases' ]] || _remem_opts+=('aliases')
[[ ! -o 'sh_glob' ]] || _remem_opts+=('sh_glob')
[[ ! -o 'ksh_arrays' ]] || _remem_opts+=('ksh_arrays')
[[ ! -o 'posix_identifiers' ]] || _remem_opts+=('posix_identifiers')
[[ ! -o 'csh_junkie_loops' ]] || _remem_opts+=('csh_junkie_loops')
'builtin' 'setopt' 'no_aliases' 'no_sh_glob' 'no_ksh_arrays' 'no_posix_identifiers' 'no_csh_junkie_loops'

# Where somebody has locked the arrays, nothing can be put into them.
if [[ -o interactive && ${_remem_pid-} != $$ ]] && zmodload zsh/datetime zsh/parameter zsh/regex &&
  [[ "${parameters[preexec_functions]-}${parameters[precmd_functions]-}${parameters[zshexit_functions]-}" != *readonly* ]]; then

typeset -g _remem_store=@STORE@
typeset -g _remem_pid=$$ _remem_tty=$TTY _remem_name= _remem_histfile=
typeset -g _remem_held= _remem_held_d= _remem_held_n= _remem_held_t= _remem_n=
typeset -g _remem_cmd= _remem_why= _remem_pwd= _remem_head= _remem_ign=
typeset -gi _remem_t0=0 _remem_seq=0 _remem_part=0 _remem_rows=0 _remem_bytes=0

# What may be a secret at all; then the shapes: what stays, what goes, what stays behind it.
typeset -g _remem_maybe=@MAYBE@
typeset -g _remem_pem=@PEM@
typeset -ga _remem_shapes
_remem_shapes=(
@SHAPES@
)

_remem_now() {
  local -a t
  t=($epochtime)
  REPLY=$((t[1] * 1000000 + t[2] / 1000))
}

# Where a command runs: folder, branch, and whether an ignore marker stands above it.
_remem_look() {
  local d=$PWD g= l=
  _remem_pwd=$PWD _remem_head= _remem_ign=
  [[ $d == / ]] && d=
  while ((1)); do
    if [[ -z $g && -e $d/.git ]]; then
      if [[ -d $d/.git ]]; then
        g=$d/.git
      elif [[ -f $d/.git ]]; then
        IFS= builtin read -r l <$d/.git
        g=${l#gitdir: }
        [[ $g == /* ]] || g=$d/$g
      fi
      if [[ -f $g/HEAD ]]; then
        IFS= builtin read -r l <$g/HEAD
        _remem_head=${l#ref: refs/heads/}
      fi
    fi
    if [[ -f $d/.rememignore ]]; then
      l='*'
      [[ -s $d/.rememignore ]] && IFS= builtin read -r l <$d/.rememignore
      [[ $l == '*' ]] && _remem_ign=1
    fi
    [[ -n $d ]] || break
    d=${d%/*}
  done
}

# REPLY without what looks like a secret; fails when it is large and holds one.
_remem_redact() {
  local i k e o r c=$REPLY MATCH
  local -a match mbegin mend
  local -i n=0 MBEGIN MEND
  [[ $c -regex-match $_remem_maybe ]] || return 0
  while [[ $c -regex-match $_remem_pem ]]; do
    ((n++ < 50 && $#c <= 65536)) || return 1
    r=${c[MEND+1,-1]} o=
    if [[ $r == *-----END*-----* ]]; then
      r=${r#*-----END}
      o=${r#*-----}
    fi
    c=${c[1,MBEGIN-1]}'[redacted:private-key]'$o
  done
  for i in $_remem_shapes; do
    k=${i%%:*} e=${i#*:} o= r=$c
    while [[ $r -regex-match $e ]]; do
      ((n++ < 50 && $#c <= 65536)) || return 1
      o+=${r[1,MBEGIN-1]}${match[1]}"[redacted:$k]"
      r=${r[MEND+1,-1]}
      [[ $e == *@ ]] && o+=@
    done
    c=$o$r
  done
  REPLY=$c
}

# $1 as the inside of a JSON string, in REPLY.
_remem_json() {
  local s=$1 b='\' bb='\\' q='"' qq='\"' n=$'\n' nn='\n' h
  local -i i
  local -a p
  # Splitting and joining takes a time that does not grow with the square of the length.
  p=("${(@ps:$b:)s}") s=${(pj:$bb:)p}
  p=("${(@ps:$q:)s}") s=${(pj:$qq:)p}
  p=("${(@ps:$n:)s}") s=${(pj:$nn:)p}
  if [[ $s == *[$'\x00'-$'\x1f']* ]]; then
    for i in {0..31}; do
      builtin printf -v h '\\x%02x' $i
      builtin printf -v h "$h"
      if [[ $s == *$h* ]]; then
        builtin printf -v qq '\\u%04x' $i
        p=("${(@ps:$h:)s}") s=${(pj:$qq:)p}
      fi
    done
  fi
  REPLY=$s
}

# One line at the end of this session's file, which is made with mode 0600 (the one fork there is).
_remem_append() {
  if ((_remem_rows >= 1000 || _remem_bytes >= 1048576)); then
    ((_remem_part++, _remem_rows = 0, _remem_bytes = 0)) || builtin :
  fi
  local f=$1/$_remem_name-$_remem_part.jsonl
  [[ -f $f ]] || (builtin umask 077 && builtin : >>$f) || return 0
  builtin print -r -- $2 >>$f
  ((_remem_rows++, _remem_bytes += $#2, _remem_seq++)) || builtin :
}

# Why a command is not captured, in _remem_why; empty when it is.
_remem_judge() {
  _remem_why=
  if [[ -n $_remem_ign ]]; then
    _remem_why=ignored
  elif [[ $1 == [[:blank:]]* ]]; then
    [[ -n ${REMEM_SPACED-} ]] || _remem_why=space
  elif [[ -z $1 ]]; then
    _remem_why=history
  elif [[ -n ${HISTORY_IGNORE-} && $1 == ${~HISTORY_IGNORE} ]]; then
    _remem_why=history
  elif [[ $2 == 0 && $1 == (history|fc -*l*)* || $3 == 0 && $1 == (function |[[:IDENT:]]##[[:blank:]]#\(\))* ]]; then
    _remem_why=history
  elif (($#1 > 8388608)); then
    _remem_why=size
  fi
}

# Write what waits for the verdict of zshaddhistory, which shows once the next line has its number.
_remem_settle() {
  [[ -n $_remem_held ]] || return 0
  if [[ $1 == $_remem_held_n ]]; then
    _remem_append $_remem_held_d "{\"remem\":1,\"seq\":$_remem_seq,\"at\":$_remem_held_t,\"skip\":\"history\"}"
  else
    _remem_append $_remem_held_d $_remem_held
  fi
  _remem_held=
}

_remem_exit() {
  {
    emulate -L zsh
    builtin trap - DEBUG ZERR
    local LC_ALL=C
    _remem_settle ''
  } 2>/dev/null
}

_remem_preexec() {
  {
    local -i a b
    [[ -o hist_no_store ]] || a=1
    [[ -o hist_no_functions ]] || b=1
    emulate -L zsh
    builtin trap - DEBUG ZERR
    setopt extended_glob no_multibyte no_xtrace
    local LC_ALL=C REPLY
    _remem_settle $HISTCMD
    _remem_n=$HISTCMD
    _remem_look
    _remem_judge "$1" $a $b
    _remem_cmd=$1
    _remem_now
    _remem_t0=$REPLY
  } 2>/dev/null
}

_remem_precmd() {
  {
    local -i status_=$? now t=$_remem_t0
    emulate -L zsh
    builtin trap - DEBUG ZERR
    setopt extended_glob no_multibyte no_xtrace
    local LC_ALL=C REPLY c=$_remem_cmd d=${REMEM_STORE:-$_remem_store}/spool w h y
    [[ -n ${HISTFILE-} ]] && _remem_histfile=1
    ((t)) || return 0
    _remem_t0=0 _remem_cmd=
    [[ $d == /* && -d $d && -w $d && -O $d ]] || return 0
    _remem_now
    now=$REPLY
    [[ -n $_remem_name ]] || _remem_name=zsh-$now-$$
    # What is set at the prompt holds for the command before it.
    if [[ -n ${REMEM_OFF-} && $REMEM_OFF != 0 ]]; then
      _remem_why=off
    elif [[ ${HISTFILE-} == /dev/null || ( -z ${HISTFILE-} && -n $_remem_histfile ) ]]; then
      _remem_why=history-off
    fi
    REPLY=$c
    [[ -n $_remem_why ]] || _remem_redact || _remem_why=secret
    if [[ -n $_remem_why ]]; then
      _remem_append $d "{\"remem\":1,\"seq\":$_remem_seq,\"at\":$now,\"skip\":\"$_remem_why\"}"
      return 0
    fi
    _remem_json $REPLY; c=$REPLY
    _remem_json $_remem_pwd; w=$REPLY
    _remem_json $_remem_head; h=$REPLY
    _remem_json "$_remem_tty"; y=$REPLY
    c="{\"remem\":1,\"seq\":$_remem_seq,\"at\":$t,\"took\":$((now - t)),\"exit\":$status_,\"cwd\":\"$w\",\"head\":\"$h\",\"tty\":\"$y\",\"cmd\":\"$c\"}"
    if (($+functions[zshaddhistory] || $#zshaddhistory_functions)); then
      _remem_held=$c _remem_held_d=$d _remem_held_n=$_remem_n _remem_held_t=$now
    else
      _remem_append $d $c
    fi
  } 2>/dev/null
  return 0
}

typeset -ga preexec_functions precmd_functions zshexit_functions
preexec_functions=(_remem_preexec ${preexec_functions:#_remem_preexec})
zshexit_functions=(_remem_exit ${zshexit_functions:#_remem_exit})
precmd_functions=(_remem_precmd ${precmd_functions:#_remem_precmd})

fi

(($#_remem_opts)) && 'builtin' 'setopt' $_remem_opts
'builtin' 'unset' '_remem_opts'
