/** The shells that complete words of this program (CLI.md, "Commands"). */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** See {@link SHELLS}. */
export type Shell = (typeof SHELLS)[number];

/**
 * The word by which a shell's script asks for candidates: `slices-conn __complete -- WORDS…`, the last word being the
 * one to complete. It is no command: nobody types it, help does not show it, and it fails in silence.
 */
export const COMPLETE = '__complete';
