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
  const { default: ora } = await import('ora');
  const spinner = ora({ stream: terminal, color: false, hideCursor: false, discardStdin: false });
  return {
    draw(text) {
      if (isGone || !terminal.writable || !spinner.isEnabled) return false;
      spinner.text = text;
      spinner.render();
      return true;
    },
    clear() {
      if (!isGone && terminal.writable) spinner.clear();
    },
  };
}
