import { expect, test, vi } from 'vitest';
import { openProgressLine } from '../../src/main/terminal.ts';

test.each([0, undefined])(
  'on a terminal of %s columns nothing is drawn: ora would clear lines for ever',
  async (columns) => {
    const write = vi.fn(() => true);
    const terminal: NodeJS.WriteStream = Object.create(process.stderr, {
      columns: { value: columns },
      isTTY: { value: true },
      write: { value: write },
    });
    const line = await openProgressLine(terminal);
    expect(line.draw('Waiting for 127.0.0.1 (2 s)')).toBe(false);
    line.clear();
    expect(write).not.toHaveBeenCalled();
  },
);
