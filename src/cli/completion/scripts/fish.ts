import { COMPLETE } from '../shells.ts';

/** Fish, which loads it from its folder of completions by itself. */
export const fishScript = `
# fish completion for slices-conn
function __slices_conn_ask
    # One completion needs the answer twice, for values and for files: whoever is second takes it over.
    set -l line (commandline -cp)
    if test "$__slices_conn_asked" = "$line"
        set -e __slices_conn_asked
        return
    end
    set -g __slices_conn_asked "$line"
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set words (string replace -ra -- '[\\'"\\\\\\\\]' '' $words[2..] "$typed")
    set -g __slices_conn_answer (command slices-conn ${COMPLETE} -- $words 2>/dev/null </dev/null)
end

function __slices_conn_values
    __slices_conn_ask
    string match -v -r -- '^:[01]$' $__slices_conn_answer
end

complete -c slices-conn -f -a '(__slices_conn_values)'
complete -c slices-conn -n '__slices_conn_ask; test "$__slices_conn_answer[-1]" = :1' -F
`;
