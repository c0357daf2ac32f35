/** The beginning and the end of a text too long to be passed on whole; what is left out is said. */
export function excerpt(text: string, most: number): string {
  const points = text.toWellFormed()
  if (points.length <= most) return points
  const head = points.slice(0, Math.ceil(most / 2)).toWellFormed()
  const tail = points.slice(points.length - Math.floor(most / 2)).toWellFormed()
  return `${head}\n[… ${points.length - most} characters left out …]\n${tail}`
}
