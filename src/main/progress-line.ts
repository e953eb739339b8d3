import type { ProgressLine } from '../cli/print/progress.ts';

/**
 * A line with a spinner on a terminal, drawn by ora, which is loaded here: no command pays for it that waits for
 * nothing. ora's own timer would keep the process alive, and it would go on when the terminal is gone: so it is never
 * started, and only draws a frame when it is told to. It hides no cursor and reads no keys.
 */
export async function openProgressLine(terminal: NodeJS.WriteStream): Promise<ProgressLine> {
  let isGone = false;
  terminal.once('error', () => {
    isGone = true;
  });
  // On a terminal that says it has no columns, ora would clear lines for ever.
  const isDrawable = (): boolean => !isGone && terminal.writable && terminal.columns > 0;
  const { default: ora } = await import('ora');
  const spinner = ora({ stream: terminal, color: false, hideCursor: false, discardStdin: false });
  return {
    draw(text) {
      if (!isDrawable() || !spinner.isEnabled) return false;
      spinner.text = text;
      spinner.render();
      return true;
    },
    clear() {
      if (isDrawable()) spinner.clear();
    },
  };
}
