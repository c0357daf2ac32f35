import { useSyncExternalStore } from 'react'

/** The address in parts: `#/agents/Worker?tab=mail` is `{ view: 'agents', id: 'Worker', query }`. */
export interface Route {
  view: string
  id: string | undefined
  query: URLSearchParams
}

let now = read()
const readers = new Set<() => void>()

function read(): Route {
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

export function useRoute(): Route {
  return useSyncExternalStore(
    (reader) => {
      readers.add(reader)
      return () => readers.delete(reader)
    },
    () => now,
  )
}

export function linkTo(view: string, id?: string, query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1])
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
  return `#/${view}${id === undefined ? '' : `/${encodeURIComponent(id)}`}${search}`
}

export function navigate(hash: string) {
  location.hash = hash
}

/** Changes a filter of the view without adding a step to the browser history. */
export function replaceRoute(hash: string) {
  history.replaceState(null, '', hash)
  now = read()
  for (const reader of readers) reader()
}
