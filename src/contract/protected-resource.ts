import * as v from 'valibot';
import { describedText } from './fields.ts';

/**
 * Whose tokens a connectivity service takes, and where its portal is, as it publishes it (RFC 9728 §2). The last four members
 * are an extension.
 */
export const ProtectedResource = v.object({
  resource: describedText('The base address of the service.'),
  authorization_servers: v.pipe(
    v.array(v.string()),
    v.minLength(1),
    v.description('The identity provider: the issuer of user tokens.'),
  ),
  scopes_supported: v.pipe(v.array(v.string()), v.description('The scopes that a user token may have.')),
  portal_url: describedText('The address of the portal.'),
  client_id: describedText('The client as which a program logs people in by a device code.'),
  projects_api_group: describedText("The name of the portal's API of projects."),
  experiments_api_group: describedText("The name of the portal's API of experiments."),
});
/** See {@link ProtectedResource}. */
export type ProtectedResource = v.InferOutput<typeof ProtectedResource>;

/** The same as a client reads it from any service: only `resource` must be there (RFC 9728 §2). */
export const ProtectedResourceReply = v.object({
  resource: v.string(),
  authorization_servers: v.nullish(v.array(v.string())),
  portal_url: v.nullish(v.string()),
  client_id: v.nullish(v.string()),
  projects_api_group: v.nullish(v.string()),
  experiments_api_group: v.nullish(v.string()),
});
