import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseSync } from 'oxc-parser';
import { ROOT } from './packages.ts';

/** An import, as it is written. */
export interface Import {
  /** The file that has it, from the checkout's root. */
  from: string;
  to: string;
  typeOnly: boolean;
}

/** All files of code in src, and what is in them. */
export const SOURCES: ReadonlyMap<string, string> = new Map(
  globSync('src/**/*.{ts,tsx}', { cwd: ROOT })
    .map((file) => file.replaceAll('\\', '/'))
    .toSorted()
    .map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]),
);

/** A file of src as its parser reads it. @throws Error where it does not parse */
export function parsed(file: string) {
  const result = parseSync(file, SOURCES.get(file) ?? '');
  if (result.errors.length > 0) throw new Error(`${file} does not parse`);
  return result;
}

/** The imports of a file, and its exports of other files' names. */
export function importsOf(file: string): Import[] {
  const { module } = parsed(file);
  const fixed = [...module.staticImports, ...module.staticExports].flatMap((statement): Import[] => {
    const [first] = statement.entries;
    // Of exports, the entries name the file.
    const named = 'moduleRequest' in statement ? statement : first;
    const request = named && 'moduleRequest' in named ? named.moduleRequest : undefined;
    const typeOnly = first !== undefined && statement.entries.every((entry) => entry.isType);
    return request ? [{ from: file, to: request.value, typeOnly }] : [];
  });
  const source = SOURCES.get(file) ?? '';
  const dynamic = module.dynamicImports.map(({ moduleRequest }) => ({
    from: file,
    to: source.slice(moduleRequest.start + 1, moduleRequest.end - 1),
    typeOnly: false,
  }));
  return [...fixed, ...dynamic];
}

/** The file that an import means, from the checkout's root; undefined for a package. */
export function targetOf({ from, to }: Import): string | undefined {
  return to.startsWith('.') ? normalize(join(dirname(from), to)).replaceAll('\\', '/') : undefined;
}

/** The folder of src that a path lies in; undefined for the files at its top. */
export function folderOf(path: string): string | undefined {
  const [, folder, rest] = path.split('/');
  return rest === undefined ? undefined : folder;
}

/**
 * The picture of src: an arrow from each folder to those whose code it imports, dotted for types alone. An arrow is left out
 * where a longer way of arrows leads there. It is in Mermaid's language, which GitHub and editors draw.
 */
export function structurePicture(): string {
  const [code, types] = [new Map<string, Set<string>>(), new Map<string, Set<string>>()];
  for (const each of [...SOURCES.keys()].flatMap(importsOf)) {
    const target = targetOf(each);
    if (target === undefined || target === 'package.json') continue;
    const [from, to] = [nodeOf(each.from), nodeOf(target)];
    if (from === to) continue;
    const arrows = each.typeOnly ? types : code;
    arrows.set(from, (arrows.get(from) ?? new Set()).add(to));
  }
  const reaches = (from: string, to: string): boolean =>
    [...(code.get(from) ?? [])].some((next) => next === to || reaches(next, to));
  const lines = [...code].flatMap(([from, targets]) => {
    const direct = [...targets].filter(
      (to) => ![...targets].some((between) => between !== to && reaches(between, to)),
    );
    return direct.map((to) => `  ${from} --> ${to}`);
  });
  const dotted = [...types].flatMap(([from, targets]) =>
    [...targets].filter((to) => !reaches(from, to)).map((to) => `  ${from} -.-> ${to}`),
  );
  return ['flowchart TD', ...lines.toSorted(), ...dotted.toSorted()].join('\n');
}

/** A folder, or a file at the top by its name. */
function nodeOf(path: string): string {
  return folderOf(path) ?? path.replace(/^src\//, '').replace(/\.\w+$/, '');
}
