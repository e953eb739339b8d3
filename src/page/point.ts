/** A place on an element, in CSS pixels from its corner. */
export interface Point {
  x: number;
  y: number;
}
