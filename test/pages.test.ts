import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = new URL('..', import.meta.url).pathname;
const THREATS = 'src/server/THREATS.md';

const contents = new Map(
  globSync('{src,test}/**/*.{ts,js,md}', { cwd: root }).map((file) => [file, read(file)]),
);

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

/** The cells of each row of the table, by its number, as they stand. */
const rows = [...(contents.get(THREATS) ?? '').matchAll(/^\| (\d+) \| (.+) \| (.+) \|$/gm)].map(
  ([, row, what = '', tests = '']) => ({ row: Number(row), what, tests }),
);

/** The numbers of a citation such as `25 to 27, 50`. A comment may break it between two lines. */
function numbers(citation: string): number[] {
  const parts = citation.replaceAll(/[\s*/]+/g, ' ').split(/,| and /);
  return parts.flatMap((part) => {
    const [from = Number.NaN, to = from] = part.split(' to ').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}

const NUMBERS = String.raw`(\d+(?:(?:,| and| to)[\s*/]+\d+)*)`;

describe(THREATS, () => {
  it('has its rows in order, and each number once', () => {
    const order = rows.map(({ row }) => row);
    expect(order.length).toBeGreaterThan(60);
    expect(order).toEqual([...new Set(order)].toSorted((a, b) => a - b));
    expect(contents.get(THREATS)?.match(/^\| /gm)).toHaveLength(rows.length + 1);
  });

  it('has every row that is cited', () => {
    const known = new Set(rows.map(({ row }) => row));
    const cited = [...contents].flatMap(([file, text]) =>
      [
        ...text.matchAll(new RegExp(String.raw`THREATS\.md[\s*/]+${NUMBERS}`, 'g')),
        ...(file.startsWith('test/') ? text.matchAll(new RegExp(`['"\`]rows? ${NUMBERS}`, 'g')) : []),
      ].flatMap(([, citation = '']) => numbers(citation).map((row) => ({ file, row }))),
    );
    expect(cited.length).toBeGreaterThan(300);
    expect(cited.filter(({ row }) => !known.has(row))).toEqual([]);
  });

  it('names tests that exist: a file, and a part of a title in it', () => {
    const wrong = rows.flatMap(({ row, tests }) => {
      const named = [...tests.matchAll(/(test\/\S+\.ts) › "([^"]+)"/g)];
      const missing = named.filter(
        ([, file = '', title = '']) => !titles(file).some((text) => text.includes(title)),
      );
      const isWhole = tests !== '' && named.map(([test]) => test).join('; ') === tests;
      return [...(isWhole ? [] : [tests]), ...missing.map(([test]) => test)].map((test) => `${row}: ${test}`);
    });
    expect(wrong).toEqual([]);
  });
});

/** Every text in quotes of a file. */
function titles(file: string): string[] {
  const text = contents.get(file) ?? '';
  return [...text.matchAll(/(['"`])((?:\\.|(?!\1)[^\\\n])+)\1/g)].map(([, , quoted = '']) => quoted);
}

/** The pages that comments cite by their sections, and the sections: headings, and first cells of tables. */
const sections = new Map(
  [...contents]
    .filter(([file]) => /^src\/(?:\w+\/)?README\.md$/.test(file))
    .map(([file, text]) => {
      const headings = [...text.matchAll(/^#+ (.+)$/gm), ...text.matchAll(/^\| ([^|]+?) \|/gm)];
      return [file, new Set(headings.map(([, heading = '']) => heading))];
    }),
);

describe('a citation of a page', () => {
  /** Page and section of each, and the file that cites it. A comment may break it between two lines. */
  const cited = [...contents].flatMap(([file, text]) => {
    const flat = text.replaceAll(/\n\s*(?:\*|\/\/)?\s*/g, ' ');
    const citations = flat.matchAll(
      /\b((?:\w+\/)?README\.md)((?:,?(?: and)? "[^"]+"(?: \d+(?:(?:,| and| to) \d+)*)?)+)/g,
    );
    return [...citations].flatMap(([, page = '', named = '']) =>
      [...named.matchAll(/"([^"]+)"/g)].map(([, section = '']) => ({
        file,
        page: page.startsWith('src/') || page.startsWith('test/') ? page : `src/${page}`,
        section,
      })),
    );
  });

  it('names a section that it has', () => {
    expect(cited.length).toBeGreaterThan(200);
    expect(cited.filter(({ page, section }) => !sections.get(page)?.has(section))).toEqual([]);
  });

  it('is of a page of this repository', () => {
    const here = new Set([
      'README.md',
      'CHANGELOG.md',
      'THREATS.md',
      'REFERENCE.md',
      'CONTRIBUTING.md',
      'SECURITY.md',
    ]);
    const others = [...contents].flatMap(([file, text]) =>
      [...text.matchAll(/\b([A-Z]{3,}\.md)\b/g)]
        .filter(([, page = '']) => !here.has(page))
        .map(([page]) => `${file}: ${page}`),
    );
    expect(others).toEqual([]);
  });
});

describe('a link in a page', () => {
  const pages = globSync('{*.md,.github/**/*.md,src/**/*.md,test/**/*.md}', { cwd: root });
  it.each(pages)('of %s leads to a file, and to a heading of it', (page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
    const wrong = links.filter(([, path = '', heading]) => {
      const target = path === '' ? page : join(dirname(page), path);
      if (!existsSync(join(root, target))) return true;
      return heading !== undefined && !slugs(read(target)).includes(heading);
    });
    expect(wrong.map(([link]) => link)).toEqual([]);
  });
});

/** The names by which a page's headings are linked. */
function slugs(text: string): string[] {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading.toLowerCase());
  return headings.map((heading) => heading.replaceAll(/[^\w\- ]/g, '').replaceAll(' ', '-'));
}
