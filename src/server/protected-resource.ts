import type { ProtectedResource } from '../contract/addresses.ts';
import type { ProblemCode } from '../contract/problems.ts';
import { PROTECTED_RESOURCE_PATH } from '../contract/routes.ts';
import { ALL_SCOPES, CLIENT_ID, DEFAULT_SCOPE } from './identity/user-token.ts';
import type { ServiceAddresses } from './keys/service-issuer.ts';
import type { ApiGroups } from './routing.ts';

/**
 * Whose tokens a server takes, and where its portal is (RFC 9728 §2).
 *
 * @param usesForeignIssuers whether portal and identity provider are on another server, which knows the scopes of the API as it is given
 */
export function protectedResource(
  { connectivity, portal, identity }: ServiceAddresses,
  groups: ApiGroups,
  usesForeignIssuers: boolean,
): ProtectedResource {
  return {
    resource: connectivity,
    authorization_servers: [identity],
    scopes_supported: (usesForeignIssuers ? DEFAULT_SCOPE : ALL_SCOPES).split(' '),
    portal_url: portal,
    client_id: CLIENT_ID,
    projects_api_group: groups.projects,
    experiments_api_group: groups.experiments,
  };
}

/** What is wrong with a bearer token, by the code of the refusal (RFC 6750 §3.1); nothing where there is none. */
const TOKEN_ERRORS: Partial<Record<ProblemCode, string>> = {
  token_missing: '',
  token_invalid: 'invalid_token',
  token_expired: 'invalid_token',
  scope_missing: 'insufficient_scope',
};

/**
 * The header of a refusal for its bearer token (RFC 6750 §3): what is wrong, and where to learn how to get one (RFC 9728 §5.1).
 *
 * @param baseUrl `{base_url}`; undefined for the portal, which is another resource
 */
export function challenge(code: ProblemCode, baseUrl: string | undefined): Record<string, string> {
  const error = TOKEN_ERRORS[code];
  if (error === undefined) return {};
  const parts = [
    ...(error === '' ? [] : [`error="${error}"`]),
    ...(baseUrl === undefined ? [] : [`resource_metadata="${baseUrl}${PROTECTED_RESOURCE_PATH}"`]),
  ];
  return { 'www-authenticate': `Bearer ${parts.join(', ')}`.trim() };
}
