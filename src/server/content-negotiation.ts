import { JWT_TYPE } from '../contract/routes.ts';

/**
 * Whether a request wants the signed form: `Accept` names `application/jwt` and does not prefer JSON to it by its
 * quality (RFC 9110 §12.5.1; SPEC.md, "POST": otherwise JSON is returned).
 */
export function acceptsJwt(request: Request): boolean {
  const qualities = new Map(
    (request.headers.get('accept') ?? '').split(',').map((range): [string, number] => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
      const quality = parameters.find((parameter) => parameter.startsWith('q='));
      return [type, quality === undefined ? 1 : Number(quality.slice(2))];
    }),
  );
  const jwt = qualities.get(JWT_TYPE) ?? 0;
  return jwt > 0 && jwt >= (qualities.get('application/json') ?? 0);
}
