import { execFile } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AppError } from '../../src/base/errors.ts'
import type { CommandEntry } from '../../src/commands/commands.ts'
import { startTokenProxy, type TokenProxy } from '../fakes/token-proxy.ts'
import { openTestService, type TestService } from '../harness/service.ts'

/** Scenarios of the protocol's conformance suite that this server must pass. The lists below give the reason for each of the others. */
const APPLIES = [
  'server-initialize',
  'ping',
  'tools-list',
  'tools-call-simple-text',
  'tools-call-error',
  'dns-rebinding-protection',
]

/** Optional behaviour that the suite detects as absent and reports as a warning. */
const ABSENT = {
  'server-sse-polling': 'answers are plain JSON, so that there is no stream to come back to',
  'server-sse-multiple-streams': 'there are no sessions, so that there are no streams of one',
}

const NOT_OFFERED = {
  'logging-set-level': 'logging',
  'completion-complete': 'completion',
  'resources-list': 'resources',
  'resources-read-text': 'resources',
  'resources-read-binary': 'resources',
  'resources-templates-read': 'resources',
  'resources-subscribe': 'resources',
  'resources-unsubscribe': 'resources',
  'prompts-list': 'prompts',
  'prompts-get-simple': 'prompts',
  'prompts-get-with-args': 'prompts',
  'prompts-get-embedded-resource': 'prompts',
  'prompts-get-with-image': 'prompts',
  'tools-call-with-logging': 'logging from inside a tool',
  'tools-call-with-progress': 'progress from inside a tool',
  'tools-call-image': 'a tool that gives an image',
  'tools-call-audio': 'a tool that gives sound',
  'tools-call-embedded-resource': 'a tool that gives a resource',
  'tools-call-mixed-content': 'a tool that gives an image and a resource',
  'tools-call-sampling': 'a tool that asks the client for a model',
  'tools-call-elicitation': 'a tool that asks the client for input',
  'elicitation-sep1034-defaults': 'a tool that asks the client for input',
  'elicitation-sep1330-enums': 'a tool that asks the client for input',
  'json-schema-2020-12': 'a tool that refuses unknown arguments: a command names them in its receipt instead',
}

/** The tools that two of the scenarios call, added as an application would add them. */
const COMMANDS: CommandEntry[] = [
  {
    definition: {
      type: 'test_simple_text',
      summary: 'Give a text',
      fields: z.object({}),
      example: 'orc test-simple-text',
    },
    handler: { handle: () => ({ status: 'ok', result: 'This is a simple text response for testing.' }) },
  },
  {
    definition: {
      type: 'test_error_handling',
      summary: 'Fail',
      fields: z.object({}),
      example: 'orc test-error-handling',
    },
    handler: { handle: () => new AppError('CONFLICT', 'This tool always fails') },
  },
]

interface Check {
  id: string
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED'
  errorMessage?: string
}

const results = mkdtempSync(join(tmpdir(), 'orchub-conformance-'))
const checks = new Map<string, Check[]>()
let service: TestService
let proxy: TokenProxy

beforeAll(async () => {
  // The suite cannot send a token, so a proxy adds one. The proxy keeps the Host, to test the protection against rebinding.
  proxy = await startTokenProxy()
  const allowedHosts = [`127.0.0.1:${proxy.port}`, `localhost:${proxy.port}`]
  service = await openTestService({}, { commands: COMMANDS, service: { allowedHosts } })
  proxy.forward({ port: service.port, token: service.tokens.worker })
  await runSuite(`http://127.0.0.1:${proxy.port}/mcp`)
})
afterAll(async () => {
  await proxy.close()
  await service.close()
  rmSync(results, { recursive: true, force: true })
})

/** The suite as a whole fails, because this server offers only a part of MCP; each scenario has its own report. */
async function runSuite(url: string) {
  const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin: { conformance: string } }
  const suite = join(dirname(manifest), bin.conformance)
  const args = [suite, 'server', '--url', url, '--suite', 'all', '-o', results]
  await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26 }).catch(() => {})
  for (const file of globSync('*/checks.json', { cwd: results })) {
    const scenario = dirname(file).replace(/^server-(.*)-\d{4}-\d\d-\d\dT.*$/, '$1')
    checks.set(scenario, JSON.parse(readFileSync(join(results, file), 'utf8')))
  }
}

describe("the protocol's conformance suite", () => {
  it.each(APPLIES)('%s passes', (scenario) => {
    const found = checks.get(scenario) ?? []
    expect(found.filter((check) => check.status !== 'INFO').length).toBeGreaterThan(0)
    expect(found.filter((check) => check.status !== 'SUCCESS' && check.status !== 'INFO')).toEqual([])
  })

  it.each(Object.entries(ABSENT))('%s finds nothing to test: %s', (scenario) => {
    const statuses = (checks.get(scenario) ?? []).map((check) => check.status)
    expect(statuses).toContain('WARNING')
    expect(statuses).not.toContain('FAILURE')
  })

  it('has no unreviewed scenario, and no skipped one passes unnoticed', () => {
    const known = [...APPLIES, ...Object.keys(ABSENT), ...Object.keys(NOT_OFFERED)]
    expect([...checks.keys()].sort()).toEqual(known.sort())
    const passing = Object.keys(NOT_OFFERED).filter((scenario) =>
      checks.get(scenario)!.every((check) => check.status === 'SUCCESS'),
    )
    expect(passing).toEqual([])
  })

  it('is documented in docs/mcp.md, scenario by scenario', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/mcp.md'), 'utf8')
    const missing = [...checks.keys()].filter((scenario) => !page.includes(`\`${scenario}\``))
    expect(missing).toEqual([])
  })
})
