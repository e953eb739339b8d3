/** The profile that stands for the built-in server inside this process. */
export const OFFLINE = 'offline';
/** `{base_url}` of the built-in server; never fetched. */
export const OFFLINE_URL = 'http://offline.localhost';
