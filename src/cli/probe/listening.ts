import type { End } from '../../vlan/end.ts';
import type { Machine } from '../context.ts';
import { isMissingProgram, lastLine } from './devices.ts';
import { heardIn, stackIn } from './stacks.ts';

/** Notes which stacks of tags arrive. */
export interface Listener {
  /** The stacks that have arrived so far and are about the reservation, each once. */
  heard(): Promise<readonly string[]>;
  /** Ends it, and removes what it has made. */
  stop(): Promise<void>;
}

/** Why nothing can be listened to where the program is not on this machine. */
export const NO_TCPDUMP = 'there is no tcpdump on this machine';

/** How many frames are looked at: with one only of each kind, that is many more than are needed. */
const MOST_FRAMES = '20000';

/**
 * Listens with tcpdump, which needs root. Frames without any tag are not looked at.
 *
 * @returns why nothing can be listened to, where it can't
 */
export async function listenWithTcpdump(end: End, { runProgram }: Machine): Promise<Listener | string> {
  const heard = new Set<string>();
  const over = new AbortController();
  const begun = Promise.withResolvers<undefined>();
  const call = ['tcpdump', '-Q', 'in', '-e', '-n', '-l', '-s', '96', '-c', MOST_FRAMES];
  const running = runProgram([...call, '-i', end.device, 'vlan'], {
    signal: over.signal,
    onLine(line) {
      const stack = stackIn(line);
      if (heardIn(stack, end) !== undefined) heard.add(stack);
    },
    onNotice(line) {
      if (/\blistening on\b/.test(line)) begun.resolve(undefined);
    },
  });
  try {
    const ended = await Promise.race([begun.promise, running]);
    if (!ended) {
      return {
        heard: async () => [...heard],
        async stop() {
          over.abort();
          await running;
        },
      };
    }
    const isRefused = /permi/i.test(ended.stderr);
    return isRefused ? 'tcpdump needs root' : `tcpdump ended: ${lastLine(ended.stderr)}`;
  } catch (error) {
    if (isMissingProgram(error)) return NO_TCPDUMP;
    throw error;
  }
}
