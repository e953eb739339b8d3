/** Zones that browsers list by a name of before, with their present names (the IANA time zone database). */
const RENAMED: Readonly<Record<string, string>> = {
  'Africa/Asmera': 'Africa/Asmara',
  'America/Buenos_Aires': 'America/Argentina/Buenos_Aires',
  'America/Catamarca': 'America/Argentina/Catamarca',
  'America/Cordoba': 'America/Argentina/Cordoba',
  'America/Godthab': 'America/Nuuk',
  'America/Indianapolis': 'America/Indiana/Indianapolis',
  'America/Jujuy': 'America/Argentina/Jujuy',
  'America/Louisville': 'America/Kentucky/Louisville',
  'America/Mendoza': 'America/Argentina/Mendoza',
  'Asia/Calcutta': 'Asia/Kolkata',
  'Asia/Katmandu': 'Asia/Kathmandu',
  'Asia/Rangoon': 'Asia/Yangon',
  'Asia/Saigon': 'Asia/Ho_Chi_Minh',
  'Atlantic/Faeroe': 'Atlantic/Faroe',
  'Europe/Kiev': 'Europe/Kyiv',
  'Pacific/Enderbury': 'Pacific/Kanton',
  'Pacific/Ponape': 'Pacific/Pohnpei',
  'Pacific/Truk': 'Pacific/Chuuk',
};

/** The present name of a zone. @example presentName('Europe/Kiev') // 'Europe/Kyiv' */
export function presentName(zone: string): string {
  return RENAMED[zone] ?? zone;
}

/** The browser's own zone. */
export const OWN_ZONE = presentName(Intl.DateTimeFormat().resolvedOptions().timeZone);

/** All zones, by their present names. */
export const ZONES: readonly string[] = [
  ...new Set([OWN_ZONE, 'UTC', ...Intl.supportedValuesOf('timeZone').map(presentName)]),
].toSorted();

/** How many zones are offered without a search. */
const OFFERED = 6;

/** The zones to offer first. @param kept those that were used before, the last one first, as {@link lastZones} gave them */
export function lastZones(first: readonly string[], kept: string | null): string[] {
  const used = kept?.split(' ').filter((zone) => ZONES.includes(zone)) ?? [];
  return [...new Set([OWN_ZONE, ...first.map(presentName), 'UTC', ...used])].slice(0, OFFERED);
}
