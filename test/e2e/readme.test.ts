import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { COMPILED } from '../fixtures/compiled.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** The tours of the README and of the operators' README, run from their own text by a plain shell in an empty home. */
const root = new URL('../..', import.meta.url).pathname;
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const operators = readFileSync(join(root, 'src/operate/README.md'), 'utf8');
let folder: string;

beforeEach(() => {
  folder = temporaryFolder();
  // What `npx slices-conn` finds in a checkout, without asking npm each time.
  mkdirSync(join(folder, 'bin'));
  mkdirSync(join(folder, 'tmp'));
  const launcher = join(folder, 'bin', 'npx');
  writeFileSync(launcher, `#!/bin/sh\nshift\nexec "${process.execPath}" "${root}bin/slices-conn.js" "$@"\n`);
  chmodSync(launcher, 0o755);
});

/** The shell blocks below a heading of a page, as one script. */
function script(page: string, heading: string): string {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`The page has no section "${heading}"`);
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block).join('\n');
}

/** Runs it to its end. @returns what it printed on stdout */
function runInShell(text: string): string {
  const PATH = [join(folder, 'bin'), dirname(process.execPath), process.env['PATH']].join(delimiter);
  const env = { ...COMPILED, HOME: folder, TMPDIR: join(folder, 'tmp'), PATH };
  const { status, stdout, stderr } = spawnSync('sh', ['-e', '-c', text], {
    ...{ cwd: folder, encoding: 'utf8', timeout: PATIENCE, env },
  });
  expect([status, status === 0 ? '' : stderr]).toEqual([0, '']);
  return stdout;
}

/** A tour leaves nothing in the home, in the working folder, or among the temporary files. */
function expectNothingLeft(): void {
  expect(readdirSync(folder).toSorted()).toEqual(['bin', 'tmp']);
  expect(readdirSync(join(folder, 'tmp'))).toEqual([]);
}

describe('the README', () => {
  it('opens with what it is in three lines, and the two commands', () => {
    const [title, , , , , , first, second] = readme.split('\n');
    expect(title).toBe('# slices-conn');
    expect([first, second]).toEqual([
      '    npm ci && npx slices-conn --offline reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h',
      '    npm ci && npm test',
    ]);
  });

  it('has an offline tour in which every command succeeds, and which leaves nothing behind', () => {
    const stdout = runInShell(script(readme, 'A tour, offline'));
    for (const said of ['Reserved', 'Verified:', 'Updated', 'Deleted']) expect(stdout).toContain(said);
    expectNothingLeft();
  });
});

describe("the operators' README", () => {
  it('has a curl tour that answers each request as it says', () => {
    const text = script(operators, 'A tour over HTTP, with curl');
    const due = [...text.matchAll(/ {2}# (\d{3})$/gm)].map(([, status]) => status);
    const stdout = runInShell(text);
    const answered = stdout.split('\n').filter((line) => /^[2345]\d\d$/.test(line));
    expect(due).toHaveLength(19);
    expect(answered).toEqual(due);
    expect(stdout).toContain('"loc":["Site"]');
    expect(stdout).toContain('"loc":["Date"]');
    expect(stdout).toContain('"loc":["Bandwidth"]');
    expect(stdout.match(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g)?.length).toBeGreaterThanOrEqual(2);
  });

  it('has a tour of the command line in which every command succeeds, and which leaves nothing behind', () => {
    const stdout = runInShell(script(operators, 'The same, with the command line'));
    const due = ['Logged in to', 'Reserved', 'Verified:', 'Active:', 'Updated', 'Deleted', 'Logged out'];
    expect(due.filter((said) => !stdout.includes(said))).toEqual([]);
    expect(stdout.match(/verified: signed by/g)).toHaveLength(4);
    expectNothingLeft();
  });

  it('the example of a directory file serves', () => {
    expect(runInShell(`exec 2>&1\n${script(operators, 'Users of your own')}`)).toContain('as alice');
    expect(readdirSync(join(folder, 'tmp'))).toEqual([]);
  });

  it('shows a server that is watched, backed up while it runs, and restored', () => {
    const text = script(operators, 'Operate it');
    const stdout = runInShell(text);
    const due = [...text.matchAll(/ {2}# (\d{3})$/gm)].map(([, code]) => code);
    expect(stdout.split('\n').filter((line) => /^[2345]\d\d$/.test(line))).toEqual(due);
    expect(due).toHaveLength(2);
    expect(stdout).toContain('slices_conn_bookings_total{asked="create",result="accepted"} 0');
    expect(stdout).toMatch(/Backed up to \S+\/backup\.sqlite/);
    expect(stdout.match(/Serving at /g)).toHaveLength(2);
  });
});
