import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PATIENCE } from '../../fixtures/patience.ts';
import { startCommand } from '../../fixtures/program.ts';

/** What a program did to a file or folder, or told somebody. Paths are absolute. */
export type Step =
  | { act: 'make'; path: string; kind: 'file' | 'folder' }
  | { act: 'write'; path: string; offset: number; data: Buffer }
  | { act: 'cut'; path: string; size: number }
  | { act: 'rename'; from: string; to: string }
  | { act: 'link'; from: string; to: string }
  | { act: 'remove'; path: string }
  /** The file's content, or the folder's names, are on the disk. */
  | { act: 'sync'; path: string }
  /** It begins to write to what is no file, such as `socket:[1234]` or standard output, which is `fd 1`. */
  | { act: 'tell'; to: string; data: Buffer }
  /** It has read from a socket. */
  | { act: 'hear'; from: string; data: Buffer };

/** Whether programs can be recorded here: strace is installed, and may trace. Linux only. */
export const CAN_RECORD = spawnSync('strace', ['-D', '-o', '/dev/null', 'true']).status === 0;

/** Calls that change files or names, wait for the disk, or talk. What could change a file and is not understood throws. */
const CALLS = [
  ...['open', 'openat', 'creat', 'read', 'write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'lseek'],
  ...['sendto', 'sendmsg', 'recvfrom', 'recvmsg', 'ftruncate', 'truncate', 'fallocate', 'fsync', 'fdatasync'],
  ...['sync_file_range', 'rename', 'renameat', 'renameat2', 'unlink', 'unlinkat', 'rmdir', 'link', 'linkat'],
  ...['symlink', 'symlinkat', 'mkdir', 'mkdirat', 'copy_file_range', 'sendfile'],
];

/** The longest text of a call that is kept, in bytes. A write of more throws when the recording is read. */
const LONGEST = 1 << 20;

/** The end of a recording is looked for in so many bytes. */
const TAIL = 4096;

/**
 * A command under the recorder. It is started, ends and is killed as it would be without: the recorder is not its parent.
 *
 * @param trace the file that the recording is written to
 */
export function underRecorder(trace: string, command: readonly string[]): [string, ...string[]] {
  const form = ['--seccomp-bpf', '-y', '-xx', '-s', String(LONGEST), '-e', `trace=${CALLS.join(',')}`];
  return ['strace', '-D', '-f', ...form, '-o', trace, ...command];
}

/**
 * What a program that has ended did below a folder, and what it told and heard, in order. The trace is removed: it is large.
 *
 * @param pid the program's
 * @throws Error when it changed a file in a way that is not understood
 */
export async function readRecording(trace: string, pid: number, root: string): Promise<Step[]> {
  const end = new RegExp(`^${pid} +\\+\\+\\+ (?:exited|killed)`, 'm');
  for (const limit = performance.now() + PATIENCE; ; await sleep(10)) {
    if (end.test(tailOf(trace))) {
      const text = readFileSync(trace, 'latin1');
      rmSync(trace);
      return stepsIn(text, root);
    }
    if (performance.now() > limit) throw new Error(`the recording ${trace} does not end`);
  }
}

/** How a command is recorded: the variables and folders that it runs with, and the file of the trace. */
export interface Recording {
  home: string;
  env?: Readonly<Record<string, string>>;
  trace: string;
  /** The folder that is recorded. */
  root: string;
}

/**
 * Runs a command under the recorder, which must succeed and print JSON.
 *
 * @returns what it did and what it printed; and at which step it began to print
 */
export async function runRecorded(
  args: readonly string[],
  { trace, root, ...starting }: Recording,
): Promise<{ steps: Step[]; printed: unknown; said: number }> {
  const under = (command: readonly string[]) => underRecorder(trace, command);
  const { child, ended } = startCommand([...args, '--json'], { ...starting, under });
  const { exitCode, stdout, stderr } = await ended;
  if (exitCode !== 0) throw new Error(`${args.join(' ')}: ${exitCode} ${stderr}`);
  const steps = await readRecording(trace, child.pid ?? 0, root);
  const said = steps.findIndex((step) => step.act === 'tell' && step.to === 'fd 1');
  if (said < 0) throw new Error(`${args.join(' ')} printed nothing`);
  return { steps, said, printed: JSON.parse(stdout.split('\n').findLast((line) => line !== '') ?? '') };
}

/** The last lines of a file, as far as it is written. */
function tailOf(file: string): string {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0) return '';
  const handle = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(TAIL);
    return bytes.toString('latin1', 0, readSync(handle, bytes, 0, TAIL, Math.max(0, size - TAIL)));
  } finally {
    closeSync(handle);
  }
}

/** @param text as strace writes it with the flags above */
function stepsIn(text: string, root: string): Step[] {
  const reader = new TraceReader(root);
  for (const line of text.split('\n')) reader.read(line);
  reader.end();
  return reader.steps;
}

/**
 * What the disk has of a step in which the program was killed: the system may have done it, or begun to. Of a write,
 * the bytes that stand there; undefined where nothing was done.
 */
function doneOf(step: Step): Step | undefined {
  if (step.act === 'write') {
    const { path, offset, data } = step;
    const real = existsSync(path)
      ? readFileSync(path).subarray(offset, offset + data.length)
      : Buffer.alloc(0);
    const same = real.findIndex((byte, at) => byte !== data[at]);
    return { ...step, data: data.subarray(0, same < 0 ? real.length : same) };
  }
  const isDone =
    (step.act === 'make' && existsSync(step.path)) ||
    (step.act === 'cut' && statSync(step.path, { throwIfNoEntry: false })?.size === step.size) ||
    (step.act === 'remove' && !existsSync(step.path)) ||
    ((step.act === 'rename' || step.act === 'link') && existsSync(step.to));
  return isDone ? step : undefined;
}

/** A call's arguments and its result. */
interface Call {
  name: string;
  /** The files of the descriptors, in order, and of the result. */
  files: string[];
  /** Each text. */
  texts: Buffer[];
  /** The arguments as they stand there. */
  text: string;
  result: number;
}

const LINE = /^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)$/;
/** `socket:`, as strace writes it. */
const SOCKET = [...'socket:'].map((each) => `\\x${each.charCodeAt(0).toString(16)}`).join('');
const UNFINISHED = ' <unfinished ...>';

class TraceReader {
  readonly steps: Step[] = [];
  readonly #root: string;
  /** The beginning of a call that is under way, by thread. */
  readonly #begun = new Map<string, { name: string; args: string }>();
  /** Where the next plain write to a file goes. */
  readonly #positions = new Map<string, number>();
  /** The size of a file that is opened to be appended to. */
  readonly #sizes = new Map<string, number>();

  constructor(root: string) {
    this.#root = root;
  }

  read(line: string): void {
    const [, thread = '', resumed, began, rest = ''] = LINE.exec(line) ?? [];
    const name = resumed ?? began;
    if (name === undefined) return;
    // What is read of files is much, and changes nothing.
    if (name === 'read' && resumed === undefined && !rest.slice(0, 64).includes(SOCKET)) return;
    if (rest.endsWith(UNFINISHED)) {
      const args = rest.slice(0, -UNFINISHED.length);
      this.#begun.set(thread, { name, args });
      // What is told may be heard before the call returns.
      this.#tell(callOf(name, args, Number.MAX_SAFE_INTEGER));
      return;
    }
    const { args: begun = '' } = this.#begun.get(thread) ?? {};
    this.#begun.delete(thread);
    const whole = resumed === undefined ? rest : begun + rest;
    const [, args = '', result = ''] = /^(.*)\) += (-?\d+|\?)/.exec(whole) ?? [];
    if (result === '?') this.#begun.set(thread, { name, args });
    // It failed, or the process ended in it.
    if (!(Number(result) >= 0)) return;
    const call = callOf(name, args, Number(result), whole.slice(args.length));
    if (resumed === undefined) this.#tell(call);
    this.#add(call);
  }

  /** Takes over what the program's end cut off, as far as the disk has it. */
  end(): void {
    for (const { name, args } of this.#begun.values()) {
      if (!/^(?:p?write|open|creat|f?truncate|rename|unlink|rmdir|link|mkdir)/.test(name)) continue;
      const call = callOf(name, args, 0);
      const size = call.texts.reduce((sum, each) => sum + each.length, 0);
      const done = this.steps.length;
      this.#add({ ...call, result: size });
      for (const step of this.steps.splice(done)) {
        const part = doneOf(step);
        if (part) this.steps.push(part);
      }
    }
  }

  #tell({ name, files: [to = ''], texts, text, result }: Call): void {
    if (!/^(?:write|writev|sendto|sendmsg)$/.test(name)) return;
    // Standard output and errors may be files.
    const place = /^[12]</.test(text) ? `fd ${text[0]}` : to;
    if (place.startsWith('/')) return;
    this.steps.push({ act: 'tell', to: place, data: Buffer.concat(texts).subarray(0, result) });
  }

  #add(call: Call): void {
    const { name, files, texts, text } = call;
    const [file = ''] = files;
    if (/^(?:read|recvfrom|recvmsg)$/.test(name)) {
      const data = Buffer.concat(texts);
      if (file.startsWith('socket:') && data.length > 0) this.steps.push({ act: 'hear', from: file, data });
      return;
    }
    const isWrite = /^(?:p?write|send)/.test(name);
    const named = isWrite ? [] : texts.map((each) => resolve(files[0] ?? '/', each.toString()));
    const touched = named.length > 0 ? named : files;
    // What has no name any more is gone with its last descriptor.
    if (/^\d+<>\(deleted\)/.test(text)) return;
    if (!touched.some((each) => each === this.#root || each.startsWith(`${this.#root}/`))) return;
    const [path = '', to = ''] = touched;
    const last = Number(/\d+$/.exec(text)?.[0] ?? 0);
    if (/^(?:open|openat|creat)$/.test(name)) this.#open(path, text, name);
    else if (/^p?write/.test(name)) this.#write(call, path, last);
    else if (name.endsWith('truncate')) this.steps.push({ act: 'cut', path, size: last });
    else if (name === 'fsync' || name === 'fdatasync') this.steps.push({ act: 'sync', path });
    else if (name.startsWith('rename')) this.steps.push({ act: 'rename', from: path, to });
    else if (name.startsWith('link')) this.steps.push({ act: 'link', from: path, to });
    else if (name.startsWith('mkdir')) this.steps.push({ act: 'make', path, kind: 'folder' });
    else if (name.startsWith('unlink') || name === 'rmdir') this.steps.push({ act: 'remove', path });
    else throw new Error(`the recording has ${name} of ${path}, which is not understood`);
  }

  #open(path: string, text: string, name: string): void {
    this.#positions.set(path, 0);
    if (name === 'creat' || text.includes('O_CREAT')) this.steps.push({ act: 'make', path, kind: 'file' });
    if (name === 'creat' || text.includes('O_TRUNC')) this.steps.push({ act: 'cut', path, size: 0 });
    if (text.includes('O_APPEND')) this.#positions.set(path, this.#sizes.get(path) ?? 0);
  }

  #write({ name, texts, result }: Call, path: string, last: number): void {
    const data = Buffer.concat(texts);
    if (data.length < result) throw new Error(`a write of ${result} bytes to ${path} is too long to be kept`);
    const offset = name.startsWith('pwrite') ? last : (this.#positions.get(path) ?? 0);
    if (!name.startsWith('pwrite')) this.#positions.set(path, offset + result);
    this.#sizes.set(path, Math.max(this.#sizes.get(path) ?? 0, offset + result));
    this.steps.push({ act: 'write', path, offset, data: data.subarray(0, result) });
  }
}

/** @param after what stands after the arguments: the file of a new descriptor is in it */
function callOf(name: string, args: string, result: number, after = ''): Call {
  const decoded = (text: string): Buffer => Buffer.from(text.replaceAll('\\x', ''), 'hex');
  const files = [...`${args}${after}`.matchAll(/<((?:\\x[0-9a-f]{2})*)>/g)].map(([, file = '']) =>
    decoded(file).toString(),
  );
  const texts = [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, each = '']) => decoded(each));
  const text = args.replaceAll(/"[^"]*"/g, '""').replaceAll(/<[^>]*>/g, '<>');
  return { name, files, texts, text, result };
}
