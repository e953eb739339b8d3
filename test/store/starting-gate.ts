import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** What a process left: what it wrote after `ready`, and its stderr. */
export interface Finish {
  output: string;
  errors: string;
}

/**
 * Runs Node processes that start their work together: each writes `ready` when it could begin, and begins when its
 * stdin ends, which is when all are ready.
 *
 * @param args of `node`, for each process
 */
export async function raceProcesses(...args: readonly (readonly string[])[]): Promise<Finish[]> {
  const runs = args.map((each) => {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...each]);
    const finish = { output: '', errors: '' };
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      finish.output += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      finish.errors += chunk;
    });
    const closed = once(child, 'close');
    return { child, finish, closed, ready: Promise.race([once(child.stdout, 'data'), closed]) };
  });
  await Promise.all(runs.map(({ ready }) => ready));
  for (const { child } of runs) child.stdin.end();
  await Promise.all(runs.map(({ closed }) => closed));
  return runs.map(({ finish: { output, errors } }) => ({ output: output.replace(/^ready/, ''), errors }));
}
