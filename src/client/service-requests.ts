import { Failure } from '../contract/failure.ts';
import { EXPERIMENT_TOKEN_HEADER, JWT_TYPE, type RouteName } from '../contract/routes.ts';
import type { Secret } from '../contract/secret.ts';
import { type Fetch, type Incoming, sendFrom, type Transport } from '../contract/sending.ts';
import { claimedSubject } from '../tokens/claimed.ts';
import type { Trust } from '../tokens/verify.ts';
import {
  bearerHeader,
  exchange,
  headerToken,
  limitOf,
  type RequestParts,
  readTokenInput,
  requestTo,
  type TokenInput,
} from './exchange.ts';
import { type ReadYaml, rememberedFeatures, type ServiceFeatures } from './features.ts';
import { expiredInstead, type Reply } from './reply-failure.ts';

/** Where the two tokens go (contract/README.md, "Experiment token's header", column Client). */
export type TokenPlacement = 'user' | 'experiment';

/** Options of `createConnectivityClient`. */
export interface ConnectivityClientOptions {
  /** Sends each request; must not follow redirects. */
  fetch: Fetch;
  /**
   * How long a reply may take to its end, in milliseconds; `Infinity` where `fetch` has a limit of its own. Default
   * 60,000. A request that the limit ends may still have taken effect (`maybeDone`).
   */
  timeout?: number;
  /** `{base_url}`, without a trailing slash. */
  baseUrl: string;
  /** The user token (contract/README.md, "User token"). */
  userToken: TokenInput;
  /**
   * A token of the experiment that reservations belong to, such as the portal's client gives. Without it only the user
   * token is sent: administrators of the reference server may read and delete the reservations of every experiment so.
   */
  experimentToken?: TokenInput;
  /** The issuers whose signature on a reservation is accepted. */
  trust: Trust;
  /** `user` (the default): user token in Authorization; `experiment`: experiment token there, user token in `tokens`. */
  tokenPlacement?: TokenPlacement;
  /** Default `Slices-Experiment-Token`. */
  experimentTokenHeader?: string;
  /** The command that changes `tokenPlacement`, for people whose tokens are refused. */
  placementFix?: string;
  /** Reads an API description in YAML. Without it only JSON is read. */
  readYaml?: ReadYaml;
}

/**
 * The tokens that a request carries: `both`; the `user` token alone; or the user token with the experiment's, whose
 * `share` of a link may be less than what is free, where there is one.
 */
export type SentTokens = 'both' | 'user' | 'share';

/** A request to a route, without its tokens. */
interface ServiceRequest extends Omit<RequestParts, 'headers'> {
  tokens: SentTokens;
  /** Beside those with tokens. */
  headers?: Readonly<Record<string, string>>;
}

/** One connectivity service: its requests carry the tokens that they need. Every method throws Failure. */
export interface ServiceRequests {
  send(name: RouteName, request: ServiceRequest): Promise<Reply>;
  /** Opens a reply that goes on; its caller reads it. @throws Failure where it is refused */
  open(name: RouteName, request: ServiceRequest, signal: AbortSignal): Promise<Incoming>;
  features(): Promise<ServiceFeatures>;
  userToken(): Promise<Secret>;
  /** The id of the experiment, as its token claims it; undefined where it does not, and without a token. */
  experiment(): Promise<string | undefined>;
  readonly trust: Trust;
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number;
}

/** The requests of a client. */
export function serviceRequests(
  options: Omit<ConnectivityClientOptions, 'fetch'> & Transport,
): ServiceRequests {
  const { baseUrl, trust, tokenPlacement = 'user', timeout = limitOf(options) } = options;
  const { experimentTokenHeader = EXPERIMENT_TOKEN_HEADER } = options;
  const transport = sendFrom(options);
  const now = trust.now ?? Date.now;
  const userToken = () => readTokenInput(options.userToken);

  const experimentToken = async () =>
    options.experimentToken === undefined ? undefined : readTokenInput(options.experimentToken);

  /** The headers that carry tokens, and the tokens, which no output may show. */
  async function headersWith(
    tokens: SentTokens,
  ): Promise<{ headers: Record<string, string>; secrets: Secret[] }> {
    const user = await userToken();
    const optional = (error: unknown): undefined => {
      if (tokens !== 'share') throw error;
    };
    const experiment = tokens === 'user' ? undefined : await experimentToken().catch(optional);
    if (!experiment) return { headers: { authorization: bearerHeader(user) }, secrets: [user] };
    const secrets = [user, experiment];
    if (tokenPlacement === 'experiment' && tokens === 'both') {
      return { headers: { authorization: bearerHeader(experiment) }, secrets };
    }
    const headers = { authorization: bearerHeader(user), [experimentTokenHeader]: headerToken(experiment) };
    return { headers, secrets };
  }

  async function send(name: RouteName, { tokens, headers = {}, ...parts }: ServiceRequest): Promise<Reply> {
    const held = await headersWith(tokens);
    const sendAs = async (accept: string): Promise<Reply> => {
      const request = requestTo(baseUrl, name, {
        ...parts,
        accept,
        headers: { ...held.headers, ...headers },
      });
      try {
        return await exchange(transport, request, held.secrets, timeout);
      } catch (error) {
        // A question can be asked again of a service that can't sign (RFC 9110 §15.5.7): what it says unsigned is judged as such.
        const signsNothing = error instanceof Failure && error.facts.httpStatus === 406;
        if (signsNothing && accept === JWT_TYPE && request.method === 'GET')
          return sendAs('application/json');
        const known = expiredInstead(error, Object.values(held.headers), now());
        const isPlaced = tokens === 'both' && held.secrets.length > 1;
        throw isPlaced
          ? placedOtherwise(known, tokenPlacement, experimentTokenHeader, options.placementFix)
          : known;
      }
    };
    const sent = sendAs(parts.accept);
    return options.experimentToken === undefined ? sent.catch(notAdministrator) : sent;
  }

  async function open(
    name: RouteName,
    { tokens, headers = {}, ...parts }: ServiceRequest,
    signal: AbortSignal,
  ): Promise<Incoming> {
    const held = await headersWith(tokens);
    const request = requestTo(baseUrl, name, { ...parts, headers: { ...held.headers, ...headers } });
    const reply = await transport({ ...request, signal, isEndless: true });
    if (reply.status !== 200) await exchange(async () => reply, request, held.secrets, timeout);
    return reply;
  }

  return {
    send,
    open,
    features: rememberedFeatures(transport, baseUrl, now, options.readYaml),
    userToken,
    async experiment() {
      const token = await experimentToken();
      return token && claimedSubject(token.reveal());
    },
    trust,
    now,
  };
}

/** Says where tokens were sent that a service did not accept, without a code of its own: it may expect them elsewhere. */
function placedOtherwise(error: unknown, placement: TokenPlacement, header: string, fix?: string): unknown {
  if (!(error instanceof Failure) || error.facts.hasOwnCode !== false) return error;
  if (error.code !== 'forbidden' && error.code !== 'token_invalid') return error;
  const [first, second] = placement === 'user' ? ['user', 'experiment'] : ['experiment', 'user'];
  const place = placement === 'user' ? header : 'the body';
  return error.with({
    why: `The ${first} token was sent in Authorization, and the ${second} token in ${place}. Some services expect the ${second} token in Authorization: tokenPlacement=${second}.`,
    fix,
  });
}

/** A service asks users who are not administrators for an experiment token: that failure becomes `forbidden`. */
function notAdministrator(error: unknown): never {
  if (!(error instanceof Failure) || error.code !== 'token_missing') throw error;
  throw new Failure('forbidden', 'This service does not know you as an administrator.', {
    ...error.facts,
    why: 'Its operator names administrators when it starts: serve --administrator USER_ID.',
  });
}
