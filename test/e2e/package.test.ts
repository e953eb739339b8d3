import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** The packed package, installed by someone who has only the tarball and runs no install scripts. */
const root = new URL('../..', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'slices-conn-package-'));
const installed = join(folder, 'node_modules', 'slices-conn');

function npm(...args: string[]): void {
  execFileSync('npm', [...args, '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: 'pipe',
  });
}

function book(node: string, home: string) {
  const args = [
    '--offline',
    'reserve',
    'be-gent1',
    'pl-poznan1',
    '--bandwidth',
    '1G',
    '--start-now',
    '--for',
    '2h',
  ];
  return spawnSync(node, [join(installed, 'bin', 'slices-conn.js'), ...args], {
    env: { HOME: join(folder, home), PATH: '' },
    encoding: 'utf8',
  });
}

beforeAll(() => {
  writeFileSync(join(folder, 'package.json'), '{"name":"stranger","version":"1.0.0","type":"module"}');
  execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
    stdio: 'pipe',
  });
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  // The oldest Node that package.json allows, as the binary that its own package brings.
  const oldest = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}@22.19.0`;
  npm('install', join(folder, tarball), oldest);
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the packed tarball, installed with --ignore-scripts', () => {
  const oldest = join(
    folder,
    'node_modules',
    `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`,
    'bin',
    'node',
  );

  it.each([
    ['the oldest Node that is allowed, 22.19', oldest],
    ['the Node of the checkout, 24', process.execPath],
  ])('books offline under %s, without a warning', (name, node) => {
    const { status, stdout, stderr } = book(node, name);
    expect(stderr).toMatch(/^Using experiment demo [^\n]*\n$/);
    expect(stdout.match(/[SC]-tag \d+/g)).toHaveLength(4);
    expect(stdout).toContain('verified: signed by http://offline.localhost');
    expect(status).toBe(0);
  });

  it('has types that a strict program compiles against, and rejects what is wrong', () => {
    const program = join(folder, 'program.ts');
    const compile = (source: string) => {
      writeFileSync(program, source);
      const types = join(root, 'node_modules', '@types');
      const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node'];
      return spawnSync(join(root, 'node_modules', '.bin', 'tsc'), [...flags, '--typeRoots', types, program], {
        cwd: folder,
        encoding: 'utf8',
      });
    };
    const head =
      "import { createVerifier } from 'slices-conn';\nconst verifier = createVerifier({ issuers: {} });\n";
    expect(compile(`${head}const kind: string = (await verifier.verify('')).kind;`).stdout).toBe('');
    expect(compile(`${head}const kind: number = (await verifier.verify('')).kind;`).status).not.toBe(0);
  });

  it('runs no script and brings no native code', () => {
    const modules = join(folder, 'node_modules');
    const manifests = globSync(['*/package.json', '@*/*/package.json'], { cwd: modules });
    expect(manifests.length).toBeGreaterThan(10);
    const hooks = ['preinstall', 'install', 'postinstall'];
    const withScripts = manifests.filter((manifest) => {
      const { scripts = {} } = JSON.parse(readFileSync(join(modules, manifest), 'utf8'));
      return hooks.some((hook) => hook in scripts);
    });
    expect(withScripts).toEqual([]);
    expect(globSync('**/*.node', { cwd: modules })).toEqual([]);
  });
});
