import { COMPLETE } from '../shells.ts';

/** Zsh, both as a file to source and as a function on the fpath. */
export const zshScript = `
#compdef slices-conn
_slices-conn() {
  local -a before answer candidates
  local line value about flag directive found=1
  (( CURRENT > 2 )) && before=("\${(@Q)words[2,CURRENT-1]}")
  answer=("\${(@f)$(command slices-conn ${COMPLETE} -- "\${before[@]}" "\${(Q)PREFIX}" 2>/dev/null </dev/null)}")
  directive=$answer[-1]
  [[ $directive == :[01] ]] || return 1
  answer[-1]=()

  # Of --flag=value only the value is shown and replaced.
  if [[ $PREFIX == --*=* ]]; then
    flag=\${PREFIX%%=*}=
    compset -P '*='
  fi
  for line in $answer; do
    value=\${\${line%%$'\\t'*}#$flag}
    about=\${line#*$'\\t'}
    candidates+=("\${value//:/\\\\:}\${about:+:$about}")
  done

  # A part in the middle counts too: the program gives no others.
  (( $#candidates )) && _describe slices-conn candidates -M 'l:|=* r:|=*' && found=0
  [[ $directive == :1 ]] && _files && found=0
  return found
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _slices-conn "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
  compdef _slices-conn slices-conn
fi
`;
