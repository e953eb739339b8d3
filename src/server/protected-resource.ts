import type { ProtectedResource } from '../contract/protected-resource.ts';
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

/** The header of a refusal for want of a token: where to learn how to get one (RFC 9728 §5.1). @param baseUrl `{base_url}` */
export function challenge(baseUrl: string): { 'www-authenticate': string } {
  return { 'www-authenticate': `Bearer resource_metadata="${baseUrl}${PROTECTED_RESOURCE_PATH}"` };
}
