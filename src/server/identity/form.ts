import { refusal } from '../problem-error.ts';
import { readBytes } from '../request-body.ts';

/** The largest form that is read, in bytes. */
export const MAX_FORM = 16_384;

/**
 * Reads a form (RFC 6749 Appendix B).
 *
 * @param most the largest that is read, in bytes
 * @throws ProblemError 415 for another media type, 413 for a larger body, 400 for a parameter given twice
 */
export async function readForm(request: Request, most: number = MAX_FORM): Promise<URLSearchParams> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded') {
    throw refusal('media_type_unsupported', 'The body must be application/x-www-form-urlencoded.');
  }
  const bytes = await readBytes(request, most);
  return singleParameters(new URLSearchParams(new TextDecoder().decode(bytes)));
}

/** Parameters of which none is given twice (RFC 6749 §3.1). @throws ProblemError 400 */
export function singleParameters(parameters: URLSearchParams): URLSearchParams {
  for (const name of parameters.keys()) {
    if (parameters.getAll(name).length > 1) {
      throw refusal('request_invalid', `The parameter ${name.slice(0, 40)} is given twice.`);
    }
  }
  return parameters;
}
