import { FREE_FIELDS } from './schema.ts'

/** The protocol's names and ours (C10). Everything else only changes its spelling: `issue_number`, `issueNumber`. */
const OURS = {
  message_type: 'type',
  message_id: 'id',
  timestamp: 'at',
  from_agent: 'from',
  to_agent: 'to',
} as const
type Ours = typeof OURS

const THEIRS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(OURS).map(([theirs, ours]) => [ours, theirs]),
)

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name

type OurName<Name extends string> = Name extends keyof Ours ? Ours[Name] : Camel<Name>

type FreeField = 'details' | 'flags' | 'metrics'

/** A message of the protocol under our names. */
export type Renamed<Value> = Value extends readonly (infer Item)[]
  ? Renamed<Item>[]
  : Value extends object
    ? {
        [Key in keyof Value as Key extends string ? OurName<Key> : Key]: Key extends FreeField
          ? Value[Key]
          : Renamed<Value[Key]>
      }
    : Value

export function toOurs(value: unknown): unknown {
  return renamed(value, oursOf)
}

export function toTheirs(value: unknown): unknown {
  return renamed(value, theirsOf)
}

function oursOf(theirs: string): string {
  if (Object.hasOwn(OURS, theirs)) return OURS[theirs as keyof Ours]
  return theirs.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function theirsOf(ours: string): string {
  if (Object.hasOwn(THEIRS, ours)) return THEIRS[ours]!
  return ours.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function renamed(value: unknown, rename: (key: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .map(([key, inner]) => [rename(key), FREE_FIELDS.has(key) ? inner : renamed(inner, rename)])
  return Object.fromEntries(entries)
}
