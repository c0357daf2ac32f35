import { globSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROUTES, type Route } from '../../src/service/contract.ts'

const folder = join(import.meta.dirname, '../../src/service/contract')

/** The routes of every area, by the name of the table they stand in. */
async function areas(): Promise<[string, Record<string, Route>][]> {
  const found: [string, Record<string, Route>][] = []
  for (const file of globSync('*.ts', { cwd: folder })) {
    for (const [name, value] of Object.entries(await import(join(folder, file)))) {
      if (name.endsWith('_ROUTES')) found.push([name, value as Record<string, Route>])
    }
  }
  return found
}

describe('the table of routes', () => {
  it('has every route of every area, each name once', async () => {
    const names = (await areas()).flatMap(([, routes]) => Object.keys(routes))
    expect(names.length).toBeGreaterThan(0)
    expect(names.toSorted()).toEqual(Object.keys(ROUTES).toSorted())
  })

  it('has one route for a method and a path', () => {
    const places = Object.values<Route>(ROUTES).map(({ method, path }) => `${method} ${path}`)
    expect(places.toSorted()).toEqual([...new Set(places)].toSorted())
  })
})
