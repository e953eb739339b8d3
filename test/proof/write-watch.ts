import { watch } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

/** What {@link file:./server-kills.ts} has it do. */
export interface WriteWatch {
  file: string;
  pid: number;
  /** At which write from now on. */
  after: number;
}

// A thread of its own, woken by the kernel at each write to the file: by the time the main thread hears of it, the
// transaction is over.
const { file, pid, after }: WriteWatch = workerData;
let left = after;
const watching = watch(file, () => {
  left -= 1;
  if (left > 0) return;
  watching.close();
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It was gone before.
  }
});
parentPort?.once('message', () => watching.close());
parentPort?.postMessage('watching');
