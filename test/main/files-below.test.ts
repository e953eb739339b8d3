import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { filesOn } from '../../src/main/files.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const files = filesOn('/nonexistent');

/** `vlan --out` (THREATS.md 51): files below a folder, never through a link. */
describe('files below a folder', () => {
  let home: string;
  beforeEach(() => {
    home = temporaryFolder();
  });

  it('are made with the folders that they need, and their modes', async () => {
    const out = join(home, 'new', 'out');
    expect(await files.contentBelow(out, '/etc/netplan/x.yaml')).toBeUndefined();
    expect(existsSync(out)).toBe(false);
    await files.writeBelow(out, '/etc/netplan/x.yaml', 'a\n', true);
    await files.writeBelow(out, '/etc/y', 'b\n', false);
    expect(await files.contentBelow(out, '/etc/netplan/x.yaml')).toBe('a\n');
    const modeOf = (path: string) => statSync(join(out, path)).mode & 0o777;
    expect([modeOf('etc/netplan/x.yaml'), modeOf('etc/y')]).toEqual([0o600, 0o644]);
  });

  it('where nothing can be made are refused at once', async () => {
    // Node's own mkdir with `recursive` never ends there.
    if (!existsSync('/proc/self')) return;
    const refused = { code: 'file_unusable' };
    await expect(files.writeBelow('/proc/x', '/etc/y', 'a', false)).rejects.toMatchObject(refused);
    await expect(files.makeFolder('/proc/x/y')).rejects.toMatchObject(refused);
  });

  it('are never written through a link, nor outside', async () => {
    const [out, elsewhere] = [join(home, 'out'), join(home, 'elsewhere')];
    for (const folder of [out, elsewhere]) mkdirSync(folder);
    symlinkSync(elsewhere, join(out, 'etc'));
    symlinkSync(join(elsewhere, 'file'), join(out, 'link'));
    for (const path of ['/etc/x', '/link', '/../elsewhere/x']) {
      const refused = { code: 'file_unusable' };
      await expect(files.writeBelow(out, path, 'x', false)).rejects.toMatchObject(refused);
      await expect(files.contentBelow(out, path)).rejects.toMatchObject(refused);
    }
    expect(existsSync(join(elsewhere, 'x'))).toBe(false);
    expect(existsSync(join(elsewhere, 'file'))).toBe(false);
  });

  it('may be below a link that the person names', async () => {
    mkdirSync(join(home, 'real'));
    symlinkSync(join(home, 'real'), join(home, 'named'));
    await files.writeBelow(join(home, 'named'), '/a', 'x', false);
    expect(readFileSync(join(home, 'real', 'a'), 'utf8')).toBe('x');
  });
});
