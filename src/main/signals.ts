import type { World } from '../cli/world.ts';

/** What a command is told when the process gets a signal. */
const STOPPED = { SIGINT: 'interrupted', SIGTERM: 'terminated' } as const;
let tellStop: Parameters<World['onStop']>[0] = (stopped) => (stopped === 'interrupted' ? 130 : 143);

/** Lets SIGINT and SIGTERM end the process at once, with the exit code that {@link onStop}'s function returns. */
export function stopAtSignals(): void {
  for (const [signal, stopped] of Object.entries(STOPPED)) {
    process.once(signal, () => process.exit(tellStop(stopped)));
  }
}

/** See `World.onStop`. Without a function the exit code is the shells' own: 130 or 143. */
export function onStop(tell: Parameters<World['onStop']>[0]): void {
  tellStop = tell;
}

/** From now on SIGINT and SIGTERM do not end the process. @returns resolves at the first of them */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of Object.keys(STOPPED)) {
      process.removeAllListeners(signal);
      process.once(signal, () => resolve());
    }
  });
}
