import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { knowsTag, tagOf } from '../etag.ts';
import { keptPromises } from '../once-in.ts';
import { takes } from '../request-reading.ts';

/** The media types of the page's files, by the end of their names. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  svg: 'image/svg+xml',
};

/** The form of a page file's name: it becomes a part of a path. */
const FILE_NAME = /^[a-z][a-z0-9-]*\.([a-z]+)$/;

/** Reads one of the page's files, as installed with this package; undefined where there is none of that name. */
export type ReadPageFile = (name: string) => Promise<Uint8Array | undefined>;

/** Answers a request for one of the page's files; undefined where there is none of that name. */
export type PageFiles = (request: Request, name: string) => Promise<Response | undefined>;

const [compress, compressMore] = [promisify(gzip), promisify(brotliCompress)];

/**
 * The files that the page loads: code, style and map. Each is read and compressed at its first request, and kept; browsers
 * ask again with its ETag, so that a new release is seen at once.
 */
export function createPageFiles(readFile: ReadPageFile): PageFiles {
  const files = keptPromises<Awaited<ReturnType<typeof open>>>(Number.POSITIVE_INFINITY);

  async function open(name: string) {
    const type = MEDIA_TYPES[FILE_NAME.exec(name)?.[1] ?? ''];
    const content = type === undefined ? undefined : await readFile(name);
    if (type === undefined || content === undefined) return undefined;
    return {
      type,
      tag: tagOf(content),
      plain: Uint8Array.from(content),
      br: Uint8Array.from(await compressMore(content)),
      gzip: Uint8Array.from(await compress(content, { level: 9 })),
    };
  }

  return async (request, name) => {
    const file = await (files.get(name) ?? files.keep(name, open(name)));
    if (!file) {
      // Anyone may ask for any number of names without a file.
      files.delete(name);
      return undefined;
    }
    const { type, tag } = file;
    const headers = {
      etag: tag,
      'cache-control': 'no-cache',
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    };
    if (knowsTag(request, tag)) return new Response(null, { status: 304, headers });
    const coding = (['br', 'gzip'] as const).find((one) => takes(one, request));
    const body = file[coding ?? 'plain'];
    return new Response(body, {
      headers: {
        ...headers,
        'content-type': type,
        'content-length': String(body.byteLength),
        ...(coding ? { 'content-encoding': coding } : {}),
      },
    });
  };
}
