import type { Fetch } from '../../client/exchange.ts';
import type { DeviceLogin, IssuedTokens } from '../../client/identity.ts';
import type { KeySetStore } from '../../tokens/remote-key-set.ts';
import type { StoredCredentials } from './credentials.ts';
import type { PortalTokens } from './portal-tokens.ts';
import type { Placeholders } from './token-command.ts';
import type { TokenSource } from './token-source.ts';

/** What a logout left behind. */
export interface EndedLogin {
  /** What could not be done, as a sentence. */
  problem?: string;
  /** Until when a copy of the access token stays valid at most, in milliseconds; absent where there is none. */
  aliveUntil?: number;
}

/** A login, where it is kept, and how to make or end it. */
export interface Login {
  startLogin(): Promise<DeviceLogin>;
  /** Keeps what a login gave. */
  keep(tokens: IssuedTokens): Promise<void>;
  /** What is kept; undefined when nobody is logged in. */
  read(): StoredCredentials | undefined;
  /** Ends the session at the identity provider and forgets it. */
  end(): Promise<EndedLogin>;
  /** Where credentials are kept. */
  readonly path: string;
}

/** A way to the services of a profile, with a user who is logged in. */
export interface Connection {
  fetch: Fetch;
  /** The user token; the same for as long as it lasts. */
  userToken: TokenSource;
  /** An experiment token that the environment gives. */
  experimentToken?: TokenSource;
  /** Makes an experiment token by the profile's command. */
  experimentTokenFrom?: (placeholders: Placeholders) => TokenSource;
  /** What the portal gave before; undefined where nothing is kept. */
  portalTokens?: PortalTokens;
  /** Keeps key sets beyond this process, by their addresses; undefined where they need not be kept. */
  keySets?: (url: string) => KeySetStore;
  /** Undefined where nobody logs in: at the built-in server. */
  login?: Login;
  /** Lets go of what was opened. */
  close: () => Promise<void>;
}
