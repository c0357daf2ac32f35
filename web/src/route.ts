import { useSyncExternalStore } from 'react'

/** Where one is: `#/agents/Worker?tab=mail` is `{ view: 'agents', id: 'Worker', query }`. */
export interface Place {
  view: string
  id: string | undefined
  query: URLSearchParams
}

let now = read()
const readers = new Set<() => void>()

function read(): Place {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2)
  const [view = '', ...rest] = path.split('/')
  return {
    view: view || 'team',
    id: rest.length === 0 ? undefined : decode(rest.join('/')),
    query: new URLSearchParams(query),
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

addEventListener('hashchange', () => {
  now = read()
  for (const reader of readers) reader()
})

export function usePlace(): Place {
  return useSyncExternalStore(
    (reader) => {
      readers.add(reader)
      return () => readers.delete(reader)
    },
    () => now,
  )
}

export function to(view: string, id?: string, query: Record<string, string | undefined> = {}): string {
  const said = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1])
  const search = said.length === 0 ? '' : `?${new URLSearchParams(said)}`
  return `#/${view}${id === undefined ? '' : `/${encodeURIComponent(id)}`}${search}`
}

export function go(hash: string) {
  location.hash = hash
}

/** The same view with another filter: not a step back in the history. */
export function refine(hash: string) {
  history.replaceState(null, '', hash)
  now = read()
  for (const reader of readers) reader()
}
