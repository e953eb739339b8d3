import { KEY_SET_PATH } from '../../contract/routes.ts';

/** The files that the interactive page consists of, besides its HTML. */
export const DOCS_FILES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'api-docs.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-initializer.js': 'text/javascript; charset=utf-8',
} as const;
/** One of {@link DOCS_FILES}. */
export type DocsFile = keyof typeof DOCS_FILES;

/** Pages and key sets outside the route table, below the base address. */
export const READ_ONLY: ReadonlySet<string> = new Set([
  `/auth${KEY_SET_PATH}`,
  '/api-spec',
  '/api-docs',
  ...Object.keys(DOCS_FILES).map((name) => `/api-docs/${name}`),
]);
