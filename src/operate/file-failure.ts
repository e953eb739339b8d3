import { Failure } from '../contract/failure.ts';

/** A file that was named on the command line and can't be used. @param what such as `topology` */
export function fileFailure(what: string, path: string, cause: unknown): Failure {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new Failure('file_unusable', `The ${what} ${path} can't be used.`, { why, cause });
}
