package serve

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
)

func badRequest(format string, args ...any) error { return badinput.Errorf(format, args...) }

type object = map[string]any

// openAPI describes the questions of all tasks, in OpenAPI 3.1. Where tasks have questions of the same name, a
// request is one of theirs.
func (s *server) openAPI(w http.ResponseWriter, _ *http.Request) { reply(w, s.describe()) }

func (s *server) describe() object {
	type side struct{ about, requests, answers []any }
	all, order := map[string]*side{}, []string{}
	for _, t := range s.options.Tasks {
		in, ok := t.(command.Inspector)
		if !ok {
			continue
		}
		for _, q := range in.Questions() {
			one := all[q.Name]
			if one == nil {
				one = &side{}
				all[q.Name], order = one, append(order, q.Name)
			}
			one.about = append(one.about, t.Name()+": "+q.About)
			request := schema(q.Request)
			properties := request["properties"].(object)
			properties["run"] = object{"type": "string", "description": "a run of the task " + t.Name() + ", as /api/runs names it"}
			request["title"] = t.Name()
			answer := schema(q.Answer)
			answer["title"] = t.Name()
			one.requests, one.answers = append(one.requests, request), append(one.answers, answer)
		}
	}
	paths := s.described()
	for _, name := range order {
		one := all[name]
		var lines []string
		for _, l := range one.about {
			lines = append(lines, l.(string))
		}
		paths["/api/"+name] = object{"post": object{
			"operationId": name, "summary": strings.Join(lines, " "),
			"requestBody": inJSON("", oneOf(one.requests)), "responses": answers(inJSON("the answer", oneOf(one.answers)), questionFails...),
		}}
	}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": "gfnem serve", "version": "1", "description": "Runs, and trained models that are asked over HTTP."},
		"paths":   paths,
		// The token is needed off loopback only.
		"security": []any{object{}, object{"token": []string{}}, object{"cookie": []string{}}},
		"components": object{
			"schemas": object{"Error": schema(reflect.TypeFor[errorBody]())},
			"securitySchemes": object{
				"token":  object{"type": "http", "scheme": "bearer"},
				"cookie": object{"type": "apiKey", "in": "cookie", "name": tokenCookie},
			},
		},
	}
}

// failures are statuses of refused requests, and why; all may be 401 and 403.
var failures = map[string]string{
	"400": "the request cannot be answered as it is",
	"401": "the token is missing or wrong",
	"403": "the request comes from another site, or to another name of this machine",
	"404": "there is no such run, or its model cannot be asked this",
	"413": "the request is too large, or asks for too much",
	"415": "the request is not JSON",
	"429": "too many requests wait already",
	"500": "a mistake of the program",
	"503": "it took too long, too much is being asked at once, or the server is ending",
}

var (
	questionFails = []string{"400", "404", "413", "415", "429", "500", "503"}
	curvesFails   = []string{"400", "413", "500", "503"}
)

// answers are those of a request: that of 200, and errors.
func answers(good object, fails ...string) object {
	out := object{"200": good}
	for _, status := range append([]string{"401", "403"}, fails...) {
		out[status] = object{"description": failures[status], "content": object{
			"application/json": object{"schema": object{"$ref": "#/components/schemas/Error"}}}}
	}
	return out
}

// inJSON is a body of a schema: an answer if it has a description, else a request.
func inJSON(about string, schema any) object {
	out := object{"content": object{"application/json": object{"schema": schema}}}
	if about == "" {
		out["required"] = true
	} else {
		out["description"] = about
	}
	return out
}

// described are the paths that do not depend on tasks.
func (s *server) described() object {
	text := func(kind, about string) object {
		return object{"description": about, "content": object{kind: object{"schema": object{"type": "string"}}}}
	}
	get := func(about string, good object, fails ...string) object {
		return object{"get": object{"summary": about, "responses": answers(good, fails...)}}
	}
	query := func(name, about string) object {
		return object{"name": name, "in": "query", "description": about, "schema": object{"type": "string"}}
	}
	runs := get("Runs below the folder, as a query chooses them.", inJSON("runs, and what they have", schema(reflect.TypeFor[list]())), "400", "500")
	runs["get"].(object)["parameters"] = []any{
		query("q", "terms with spaces between them, all of which hold: word, !word, key=value, key!=value, key>number"),
		query("name", "a run; may be given several times: of these alone"),
	}
	run := object{"type": "string", "description": "a run, as /api/runs names it; . if left out"}
	return object{
		"/api/runs":   runs,
		"/api/status": get("Sweeps below the folder: what they say of their cells and workers.", inJSON("by sweep", schema(reflect.TypeFor[[]sweeping]()))),
		"/api/events": get("Server-sent events, one whenever something has changed.",
			text("text/event-stream", `data: {"version": of all that is known, "reading": runs that have not been read whole yet}`), "503"),
		"/api/curves": object{"post": object{
			"operationId": "curves", "summary": "A metric of several runs on shared steps, to be drawn.",
			"requestBody": inJSON("", schema(reflect.TypeFor[curvesRequest]())),
			"responses": answers(object{
				"description": "A length n, as 4 bytes, then a JSON object of n bytes: metric, series (name, runs, partial, other), points, parts, " +
					"version, reading. Then rows of so many points, each in 4 bytes: the steps, and of each series one row, or three of groups: " +
					"mean, mean less and mean plus a standard deviation. NaN: nothing was logged there; infinity: nothing finite. " +
					"All numbers are little-endian, those in rows floating-point numbers of single precision.",
				"content": object{"application/octet-stream": object{}},
			}, curvesFails...),
		}},
		"/api/" + aboutQuestion: object{"post": object{
			"operationId": aboutQuestion, "summary": "What a page says of the model of a run.",
			"requestBody": inJSON("", object{"type": "object", "properties": object{"run": run}}),
			"responses":   answers(inJSON("depends on the task", object{"type": "object"}), questionFails...),
		}},
		"/api/openapi.json": get("This description.", inJSON("OpenAPI 3.1", object{"type": "object"})),
		"/healthz":          get("That the server is there. No token is needed.", inJSON(`{"status":"ok"}`, object{"type": "object"})),
		"/metrics":          get("Counters for Prometheus.", text("text/plain", "in the text format 0.0.4")),
	}
}

// errorBody is what refuse writes.
type errorBody struct {
	Error struct {
		Status  int    `json:"status"`
		Message string `json:"message"`
	} `json:"error"`
}

func oneOf(all []any) any {
	if len(all) == 1 {
		return all[0]
	}
	return object{"oneOf": all}
}

// schema describes a type as JSON has it.
func schema(t reflect.Type) object {
	if t == reflect.TypeFor[json.RawMessage]() {
		return object{}
	}
	if t == reflect.TypeFor[time.Time]() {
		return object{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schema(t.Elem())}
	case reflect.Pointer:
		return schema(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return object{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": schema(t.Elem())}
	case reflect.Struct:
		properties, required := object{}, []string{}
		fieldsOf(t, properties, &required)
		out := object{"type": "object", "properties": properties}
		if len(required) > 0 {
			out["required"] = required
		}
		return out
	}
	return object{}
}

// fieldsOf adds the fields of a struct and of those that are embedded in it.
func fieldsOf(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			fieldsOf(f.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || name == "" {
			continue
		}
		one := schema(f.Type)
		if help := f.Tag.Get("help"); help != "" {
			one["description"] = help
		}
		properties[name] = one
		if !strings.Contains(options, "omitempty") {
			*required = append(*required, name)
		}
	}
}
