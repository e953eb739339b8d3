import { Failure } from '../../contract/failure.ts';
import type { End } from '../../vlan/end.ts';
import type { Machine } from '../context.ts';
import { heardIn, type Stack, stackIn, stackText } from './stacks.ts';

/** Notes which stacks of tags arrive. */
export interface Listener {
  /** The stacks that have arrived so far and are about the reservation, each once. */
  heard(): Promise<readonly Stack[]>;
  /** Ends it, and removes what it has made. */
  stop(): Promise<void>;
}

/** Why nothing can be listened to with a program, in words. */
export interface Deaf {
  /** Whether the program is not on this machine. */
  isMissing: boolean;
  why: string;
}

/** How many frames are looked at: with one only of each kind, that is many more than are needed. */
const MOST_FRAMES = 20_000;

/** Listens with tcpdump, which needs root. Frames without any tag are not looked at. */
export async function listenWithTcpdump(end: End, { runProgram }: Machine): Promise<Listener | Deaf> {
  const heard = new Map<string, Stack>();
  const over = new AbortController();
  const begun = Promise.withResolvers<undefined>();
  const running = runProgram(
    [
      ...['tcpdump', '-Q', 'in', '-e', '-n', '-l', '-s', '96', '-c', String(MOST_FRAMES)],
      ...['-i', end.device, 'vlan'],
    ],
    {
      signal: over.signal,
      onLine(line) {
        const stack = stackIn(line);
        if (stack && heardIn(stack, end) !== undefined) heard.set(stackText(stack), stack);
      },
      onNotice(line) {
        if (/\blistening on\b/.test(line)) begun.resolve(undefined);
      },
    },
  );
  const first = await Promise.race([begun.promise, running]).catch((error: unknown) => {
    if (error instanceof Failure && error.code === 'command_not_found') return error;
    throw error;
  });
  if (first instanceof Failure) return { isMissing: true, why: 'there is no tcpdump on this machine' };
  if (first) {
    const said = first.stderr.trim().split('\n').at(-1) ?? '';
    const isRefused = /permi/i.test(first.stderr);
    return { isMissing: false, why: isRefused ? 'tcpdump needs root' : `tcpdump ended: ${said}` };
  }
  return {
    heard: async () => [...heard.values()],
    async stop() {
      over.abort();
      await running;
    },
  };
}
