/** What one client, or many, may take of a server (HOSTILE.md 41, 47, 48). Times in milliseconds. */
export interface Limits {
  /** What node:http holds by itself. */
  http: {
    /** From the connection, or the last reply on it, to the end of a request's headers. A TLS handshake gets as much. */
    headersTimeout: number;
    /** From the same moment to the end of its body. */
    requestTimeout: number;
    /** How long a connection is kept without a request. */
    keepAliveTimeout: number;
    /** How often these are looked at. */
    connectionsCheckingInterval: number;
    /** All headers of a request together, in bytes. More is 431. */
    maxHeaderSize: number;
  };
  /** Lines of headers. More is 400. */
  headers: number;
  /** From the end of a request's headers to the end of its reply, as the client has read it. */
  exchangeTimeout: number;
  /** Requests on one connection, which is then closed, so that clients spread anew over several servers. */
  requestsPerConnection: number;
  /** Connections that are served at once. */
  connections: number;
  /** Connections beyond them whose first request is answered with 503; more are closed at once. */
  refusedConnections: number;
  /**
   * Connections of one address, or one /64 of IPv6, that are served at once; a tenth more are answered with 503, and more
   * still are closed at once. Behind a proxy: requests under way for one address that the proxy names; more get 503.
   */
  perAddress: number;
  /** Bytes of an answered request that are still taken in before its connection is closed. */
  rest: number;
  /** How long requests under way may take once the server is told to stop. */
  stopTimeout: number;
}

/** The limits of `serve`. Those of a body stand where it is read (`MAX_BODY`, `MAX_FORM`). */
export const LIMITS: Limits = {
  http: {
    headersTimeout: 5000,
    requestTimeout: 30_000,
    keepAliveTimeout: 5000,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 16_384,
  },
  headers: 100,
  exchangeTimeout: 60_000,
  requestsPerConnection: 1000,
  connections: 1000,
  refusedConnections: 100,
  perAddress: 100,
  rest: 1_048_576,
  stopTimeout: 6000,
};
