/** The map's own unit: the Earth around the equator is this many of them. Around Ghent one is about 3 km wide. */
export const WORLD = 8192;

/** Mercator shows no pole: what lies beyond this latitude is drawn at it. */
const LIMIT = 84;

/**
 * Where a place lies on the map: Mercator, as on most maps in browsers, so that shapes are right wherever sites are.
 *
 * @param place `[longitude, latitude]` in degrees
 * @returns `[x, y]` in units of {@link WORLD}, from the corner at 180° west and as far north as the map is wide
 */
export function project([longitude, latitude]: readonly [number, number]): [x: number, y: number] {
  const phi = (Math.max(-LIMIT, Math.min(LIMIT, latitude)) * Math.PI) / 180;
  return [
    WORLD * (longitude / 360 + 0.5),
    WORLD * (0.5 - Math.log(Math.tan(Math.PI / 4 + phi / 2)) / (2 * Math.PI)),
  ];
}

/** The land that the map draws below the links: two paths of SVG, in the units of {@link project}. */
export interface Land {
  /** The continents and islands, as areas. */
  land: string;
  /** The borders between countries, as lines. */
  borders: string;
}
