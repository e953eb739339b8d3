import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { takeRoom, writeWhole } from '../../src/files/whole.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

let folder = '';
let file = '';
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder, 'file');
});

test.each(['short', 'x'.repeat(200_000)])('room that was taken is filled, or left', (content) => {
  writeWhole(file, 'before', 0o600);
  takeRoom(file).leave();
  expect(readFileSync(file, 'utf8')).toBe('before');
  const room = takeRoom(file);
  room.fill(content);
  room.leave();
  expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual([content, 0o600]);
  expect(readdirSync(folder)).toEqual(['file']);
});

describe('a file that is written whole', () => {
  test('has its content and leaves no draft', () => {
    for (const content of ['first', Buffer.from('second')]) {
      writeWhole(file, content, 0o600);
      expect(readFileSync(file, 'utf8')).toBe(String(content));
    }
    expect(readdirSync(folder)).toEqual(['file']);
  });

  test('row 15: stays unchanged when a write fails, and leaves no draft', () => {
    mkdirSync(file);
    expect(() => writeWhole(file, 'new', 0o600)).toThrow();
    expect(readdirSync(folder)).toEqual(['file']);
    expect(statSync(file).isDirectory()).toBe(true);
  });

  test.each([0, 0o077])('row 51: has its mode with any umask: %o', (mask) => {
    const umask = process.umask(mask);
    try {
      for (const mode of [0o600, 0o644]) {
        writeWhole(file, 'new', mode);
        expect(statSync(file).mode & 0o777).toBe(mode);
      }
    } finally {
      process.umask(umask);
    }
  });

  test('row 51: replaces a symbolic link, whose target is not touched', () => {
    const elsewhere = join(folder, 'elsewhere');
    writeFileSync(elsewhere, 'mine', { mode: 0o640 });
    chmodSync(elsewhere, 0o640);
    symlinkSync(elsewhere, file);
    writeWhole(file, 'new', 0o600);
    expect([readFileSync(elsewhere, 'utf8'), statSync(elsewhere).mode & 0o777]).toEqual(['mine', 0o640]);
    expect(readFileSync(file, 'utf8')).toBe('new');
  });

  test('row 51: a draft with a predictable name is not followed', () => {
    const elsewhere = join(folder, 'elsewhere');
    writeFileSync(elsewhere, 'mine');
    for (const end of ['tmp', `${process.pid}.tmp`]) symlinkSync(elsewhere, `${file}.${end}`);
    writeWhole(file, 'new', 0o600);
    expect([readFileSync(file, 'utf8'), readFileSync(elsewhere, 'utf8')]).toEqual(['new', 'mine']);
  });
});
