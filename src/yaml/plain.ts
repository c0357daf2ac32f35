import type { Path, Report } from './problem.ts'

/** orc.yaml needs six levels, and `with` may need a few more. The limit also stops circular references. */
export const DEEPEST = 32

/** Deep-copies plain data, so that the caller's later changes have no effect, and reports anything YAML could not hold. */
export function copyPlain(value: unknown, report: Report, path: Path = []): unknown {
  if (path.length > DEEPEST) {
    report(
      path.slice(0, 6),
      'is nested too deeply',
      `At most ${DEEPEST} levels. Check that the object does not contain itself.`,
    )
    return null
  }
  if (Array.isArray(value)) return value.map((item, index) => copyPlain(item, report, [...path, index]))
  if (typeof value !== 'object' || value === null) return copyScalar(value, report, path)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) {
    report(path, 'must be a plain object', 'Use plain data that YAML could hold, not class instances.')
    return null
  }
  const copy: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') report([...path, key], PROTO_MESSAGE, PROTO_HINT, 'key')
    else if (item !== undefined) copy[key] = copyPlain(item, report, [...path, key])
  }
  return copy
}

export const PROTO_MESSAGE = 'The key "__proto__" is not allowed'
export const PROTO_HINT = 'Remove it.'

function copyScalar(value: unknown, report: Report, path: Path): unknown {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return value
  report(path, `must not be a ${typeof value}`, 'Use text, a number, true, false or null.')
  return null
}
