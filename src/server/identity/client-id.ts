/** The one client that the identity provider knows: public, by device code (RFC 8628 §3.1). */
export const CLIENT_ID = 'slices-conn';
