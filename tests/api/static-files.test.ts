import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openStaticFiles } from '../../src/api/static-files.ts'

describe('the files of the control room', () => {
  let folder: string
  let server: Server
  let url: string

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'orchub-pages-'))
    build('one')
    const pages = openStaticFiles(folder)
    server = createServer((incoming, outgoing) => {
      if (pages.has(incoming.url!)) pages.serve(incoming.url!, incoming, outgoing)
      else outgoing.writeHead(418).end()
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(() => {
    server.close()
    server.closeAllConnections()
    rmSync(folder, { recursive: true, force: true })
  })

  function build(version: string) {
    rmSync(join(folder, 'assets'), { recursive: true, force: true })
    mkdirSync(join(folder, 'assets'))
    writeFileSync(join(folder, 'assets', `${version}.js`), `// ${version}`)
    writeFileSync(join(folder, 'index.html'), `<script src="/assets/${version}.js"></script>`)
  }
  const get = async (path: string) => {
    const answer = await fetch(url + path)
    return `${answer.status} ${await answer.text()}`
  }

  it('can be replaced while the service runs: removed files are gone, new ones are found', async () => {
    expect(await get('/')).toContain('one.js')
    build('two')
    // A page loaded before the rebuild requests it; the service has never read it.
    expect(await get('/assets/one.js')).toBe('404 ')
    expect(await get('/')).toContain('two.js')
    expect(await get('/assets/two.js')).toBe('200 // two')
  })

  it('can be missing for a moment without stopping the service', async () => {
    expect(await get('/')).toContain('one.js')
    rmSync(join(folder, 'assets'), { recursive: true })
    rmSync(join(folder, 'index.html'))
    expect(await get('/assets/one.js')).toBe('404 ')
    expect(await get('/')).toContain('has not been built')
    build('two')
    expect(await get('/')).toContain('two.js')
  })
})
