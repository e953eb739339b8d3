import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StoreUnavailableError } from '../../src/allocator/store.ts';
import { underFileLock } from '../../src/store/sqlite/file.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const PATIENCE = 10_000;

let folder: string;
let file: string;
const holders: ChildProcessByStdio<Writable, Readable, null>[] = [];
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder, 'login.lock');
});
afterEach(() => {
  for (const holder of holders.splice(0)) holder.kill('SIGKILL');
});

/** Another process that has the lock. */
async function holder() {
  const program = new URL('lock-holder.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  holders.push(child);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await once(child.stdout, 'data');
  return { child, output: () => output };
}

describe('within a process', () => {
  test('one after the other', async () => {
    const told: string[] = [];
    const work = (name: string) => async () => {
      told.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      told.push(`${name} ends`);
      return name;
    };
    const names = ['a', 'b', 'c'];
    const answers = await Promise.all(names.map((name) => underFileLock(file, PATIENCE, work(name))));
    expect(answers).toEqual(names);
    // In whichever order.
    const order = told.filter((_, index) => index % 2 === 0).map(([name]) => name);
    expect(told).toEqual(order.flatMap((name) => [`${name} begins`, `${name} ends`]));
  });

  test('work that throws lets go, and its error is its own caller’s alone', async () => {
    const failing = underFileLock(file, PATIENCE, async () => {
      throw new RangeError('mine');
    });
    const next = underFileLock(file, PATIENCE, async () => 'done');
    await expect(failing).rejects.toThrow(new RangeError('mine'));
    expect(await next).toBe('done');
  });
});

describe('between processes', () => {
  test('row 13: nobody gets in before the holder is done', async () => {
    const { child, output } = await holder();
    let holderWas = '';
    const turn = underFileLock(file, PATIENCE, async () => {
      // What the holder wrote before is in the pipe: a turn of the event loop reads it.
      for (let turns = 0; turns < 2; turns += 1) await new Promise((resolve) => setImmediate(resolve));
      holderWas = output();
    });
    child.stdin.end();
    await turn;
    expect(holderWas).toBe('heldletting go');
  });

  test('row 14: the lock of a process that was killed is free at once', async () => {
    const { child } = await holder();
    const turn = underFileLock(file, PATIENCE, async () => performance.now());
    const killed = performance.now();
    child.kill('SIGKILL');
    expect((await turn) - killed).toBeLessThan(2000);
  });

  test('row 17: waiting for it holds up nothing else in the process', async () => {
    const { child } = await holder();
    let ticks = 0;
    const clock = setInterval(() => {
      ticks += 1;
      if (ticks === 20) child.stdin.end();
    }, 1);
    await underFileLock(file, PATIENCE, async () => clearInterval(clock));
    expect(ticks).toBeGreaterThanOrEqual(20);
  });

  test('who has no more patience gets an error, and the next one is not held up', async () => {
    const { child } = await holder();
    let ran = false;
    const work = async () => {
      ran = true;
    };
    for (const patience of [0, 50]) {
      await expect(underFileLock(file, patience, work)).rejects.toThrow(StoreUnavailableError);
    }
    expect(ran).toBe(false);
    const next = underFileLock(file, PATIENCE, work);
    child.stdin.end();
    await next;
    expect(ran).toBe(true);
  });
});

describe('row 16: the file', () => {
  test.each([undefined, 0o644])('is for its owner only; mode before: %o', async (before) => {
    if (before !== undefined) writeFileSync(file, '', { mode: before });
    await underFileLock(file, PATIENCE, async () => undefined);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('is refused where a symbolic link stands, and what that leads to is not touched', async () => {
    const elsewhere = join(folder, 'elsewhere');
    writeFileSync(elsewhere, '', { mode: 0o644 });
    symlinkSync(elsewhere, file);
    let ran = false;
    const turn = underFileLock(file, PATIENCE, async () => {
      ran = true;
    });
    await expect(turn).rejects.toMatchObject({ facts: { why: expect.stringContaining('symbolic link') } });
    expect(ran).toBe(false);
    expect([readFileSync(elsewhere, 'utf8'), statSync(elsewhere).mode & 0o777]).toEqual(['', 0o644]);
  });
});
