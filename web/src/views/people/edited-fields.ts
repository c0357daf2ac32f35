import { textOf } from '../../components/exact-text.ts'

interface WithAction {
  readonly action?: { readonly fields: Readonly<Record<string, unknown>> } | undefined
}

/** The fields of an action as editable text. */
export function editable({ action }: WithAction): Record<string, string> {
  return Object.fromEntries(
    Object.entries(action?.fields ?? {}).map(([name, value]) => [name, textOf(value)]),
  )
}

/** Names of changed fields that must be JSON and are not. */
export function unreadableFields({ action }: WithAction, edited: Record<string, string>): string[] {
  return Object.entries(edited)
    .filter(([name, text]) => {
      const before = action?.fields[name]
      return typeof before !== 'string' && text !== textOf(before) && !isJson(text)
    })
    .map(([name]) => name)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The changed fields only; a field that was not text is parsed as JSON. */
export function changesOf({ action }: WithAction, edited: Record<string, string>): Record<string, unknown> {
  const changes: Record<string, unknown> = {}
  for (const [name, text] of Object.entries(edited)) {
    const before = action?.fields[name]
    if (text === textOf(before)) continue
    changes[name] = typeof before === 'string' ? text : JSON.parse(text)
  }
  return changes
}
