/** The shells that complete words of this program (cli/README.md, "Commands"). */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** See {@link SHELLS}. */
export type CompletionShell = (typeof SHELLS)[number];

/**
 * The word by which a shell's script asks for candidates: `slices-conn __complete -- WORDS…`; the last word
 * is the one to complete. Help does not show it, and it prints no errors.
 */
export const COMPLETE = '__complete';

/**
 * The script for bash 3.2 or newer. Bash cuts words at COMP_WORDBREAKS (which has `:` and `=`) and replaces
 * only the part after the last cut. So the script joins the parts to complete the word, and gives each
 * candidate without its first part.
 */
const bashScript = `
# bash completion for slices-conn
_slices_conn() {
  local -a words described
  local line word glued typed cut mark value description directive i

  # The words up to the cursor; what has no space before it belongs to the word before.
  line=\${COMP_LINE:0:COMP_POINT}
  line=\${line#*"\${COMP_WORDS[0]}"}
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    glued=
    [[ $line == [^[:space:]]* ]] && glued=1
    line=\${line#"\${line%%[^[:space:]]*}"}
    if ((i == COMP_CWORD)); then word=$line; else line=\${line#"$word"}; fi
    if [[ -n $glued ]] && ((\${#words[@]} > 0)); then
      words[\${#words[@]} - 1]+=$word
    else
      words+=("$word")
    fi
  done
  for ((i = 0; i < \${#words[@]}; i++)); do words[i]=\${words[i]//[\\"\\'\\\\]/}; done

  typed=\${words[\${#words[@]} - 1]}
  cut=
  for mark in : = @; do
    [[ $COMP_WORDBREAKS == *"$mark"* && $typed == *"$mark"* ]] || continue
    value=\${typed%"$mark"*}$mark
    ((\${#value} > \${#cut})) && cut=$value
  done

  COMPREPLY=()
  directive=
  while IFS=$'\\t' read -r value description; do
    if [[ $value == :[01] ]]; then
      directive=$value
    else
      value=\${value#"$cut"}
      COMPREPLY+=("$value")
      # Unless words are only listed, readline inserts what all of them begin with, which letter case and its settings can
      # make more than the word: nothing of a description may mean anything to the shell.
      [[ $COMP_TYPE == 63 ]] || description=\${description//[^[:alnum:][:space:],.:_–-]/_}
      described+=("$value\${description:+  ($description)}")
    fi
  done < <(command slices-conn ${COMPLETE} -- "\${words[@]}" 2>/dev/null </dev/null)

  # Where several are listed, and no whole one is inserted, they are shown with what they mean.
  if [[ $COMP_TYPE == 33 || $COMP_TYPE == 63 || $COMP_TYPE == 64 ]] && ((\${#COMPREPLY[@]} > 1)); then
    COMPREPLY=("\${described[@]}")
  fi

  # Names of files are best left to readline, which knows how to quote them. Bash 3 has no compopt.
  if [[ $directive == :1 ]] && ! compopt -o default 2>/dev/null; then
    while IFS= read -r value; do COMPREPLY+=("$(printf %q "$value")"); done < <(compgen -f -- "\${typed#"$cut"}")
  fi
  return 0
}
complete -F _slices_conn slices-conn
`;

/** The script for zsh: a file to source, or a function on the fpath. */
const zshScript = `
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

/** The script for fish, which loads it from its folder of completions. */
const fishScript = `
# fish completion for slices-conn
function __slices_conn_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set words (string replace -ra -- '[\\'"\\\\\\\\]' '' $words[2..] "$typed")
    set -l answer (command slices-conn ${COMPLETE} -- $words 2>/dev/null </dev/null)
    string match -v -r -- '^:[01]$' $answer
    # Names of files are best left to fish, which has no command here.
    test "$answer[-1]" = :1; and complete -C "'' $typed"
end

complete -c slices-conn -f -a '(__slices_conn_complete)'
`;

const SCRIPTS: Readonly<Record<CompletionShell, string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** The script that teaches a shell to complete words of this program, without a newline at its end. */
export function scriptOf(shell: CompletionShell): string {
  return SCRIPTS[shell].trim();
}
