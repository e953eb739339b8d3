import { COMPLETE } from '../shells.ts';

/**
 * Bash, from 3.2 on. It cuts words at COMP_WORDBREAKS, `:` and `=` among them, and replaces only what follows the last
 * cut: words are put together again to be completed, and each candidate is given without what is left standing.
 */
export const bashScript = `
# bash completion for slices-conn
_slices_conn() {
  local -a words described
  local line word glued typed cut mark value description directive i

  # The words up to the cursor; what has no space before it belongs to the word before.
  line=\${COMP_LINE:0:\${COMP_POINT:-\${#COMP_LINE}}}
  line=\${line#*"\${COMP_WORDS[0]}"}
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    glued=
    if [[ -n $COMP_LINE ]]; then
      [[ $line == [^[:space:]]* ]] && glued=1
      line=\${line#"\${line%%[^[:space:]]*}"}
      if ((i == COMP_CWORD)); then word=$line; else line=\${line#"$word"}; fi
    elif [[ $word == [:=] || \${COMP_WORDS[i - 1]} == [:=] ]]; then
      glued=1
    fi
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
