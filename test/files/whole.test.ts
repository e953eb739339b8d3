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
import { beforeEach, expect, test } from 'vitest';
import { takeRoom, writeWhole } from '../../src/files/whole.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

let [folder, file, elsewhere] = ['', '', ''];
beforeEach(() => {
  folder = temporaryFolder();
  [file, elsewhere] = [join(folder, 'file'), join(folder, 'elsewhere')];
});
const textOf = (path: string) => [readFileSync(path, 'utf8'), statSync(path).mode & 0o777];

test.each(['short', 'x'.repeat(200_000)])('room that was taken is filled, or left', (content) => {
  writeWhole(file, Buffer.from('before'), 0o600);
  takeRoom(file).leave();
  expect(textOf(file)).toEqual(['before', 0o600]);
  const room = takeRoom(file);
  room.fill(content);
  room.leave();
  expect(textOf(file)).toEqual([content, 0o600]);
  expect(readdirSync(folder)).toEqual(['file']);
});

test('row 15: stays unchanged when a write fails, and leaves no draft', () => {
  mkdirSync(file);
  expect(() => writeWhole(file, 'new', 0o600)).toThrow();
  expect(readdirSync(folder)).toEqual(['file']);
  expect(statSync(file).isDirectory()).toBe(true);
});

test.each([0, 0o077])('row 51: a file has its mode with any umask: %o', (mask) => {
  const umask = process.umask(mask);
  try {
    for (const mode of [0o600, 0o644]) {
      writeWhole(file, 'new', mode);
      expect(textOf(file)).toEqual(['new', mode]);
    }
  } finally {
    process.umask(umask);
  }
});

test('row 51: replaces a symbolic link, whose target is not touched', () => {
  writeFileSync(elsewhere, 'mine');
  chmodSync(elsewhere, 0o640);
  symlinkSync(elsewhere, file);
  writeWhole(file, 'new', 0o600);
  expect([textOf(elsewhere), textOf(file)]).toEqual([
    ['mine', 0o640],
    ['new', 0o600],
  ]);
});

test('row 51: a draft with a predictable name is not followed', () => {
  writeFileSync(elsewhere, 'mine');
  for (const end of ['tmp', `${process.pid}.tmp`]) symlinkSync(elsewhere, `${file}.${end}`);
  writeWhole(file, 'new', 0o600);
  expect([textOf(file)[0], textOf(elsewhere)[0]]).toEqual(['new', 'mine']);
});
