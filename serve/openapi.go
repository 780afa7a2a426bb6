package serve

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

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
	failure := object{"description": "an object with error.status and error.message", "content": object{
		"application/json": object{"schema": object{"$ref": "#/components/schemas/Error"}}}}
	paths := object{}
	for _, name := range order {
		one := all[name]
		var lines []string
		for _, l := range one.about {
			lines = append(lines, l.(string))
		}
		paths["/api/"+name] = object{"post": object{
			"operationId": name, "summary": strings.Join(lines, " "),
			"requestBody": object{"required": true, "content": object{"application/json": object{"schema": oneOf(one.requests)}}},
			"responses": object{
				"200": object{"description": "the answer", "content": object{"application/json": object{"schema": oneOf(one.answers)}}},
				"400": failure, "404": failure, "413": failure, "429": failure, "503": failure,
			},
		}}
	}
	read := func(about string) object {
		return object{"get": object{"summary": about, "responses": object{"200": object{"description": "JSON"}}}}
	}
	paths["/api/"+aboutQuestion] = object{"post": object{
		"operationId": aboutQuestion, "summary": "What a page says of the model of a run.",
		"requestBody": object{"required": true, "content": object{"application/json": object{"schema": object{
			"type": "object", "properties": object{"run": object{"type": "string", "description": "a run, as /api/runs names it"}}}}}},
		"responses": object{"200": object{"description": "an object, which depends on the task"}, "400": failure, "404": failure},
	}}
	paths["/api/runs"] = read("All runs below the folder: name, task, status, step, configuration, last metrics.")
	paths["/healthz"] = read("That the server is there.")
	return object{
		"openapi":    "3.1.0",
		"info":       object{"title": "gfnem serve", "version": "1", "description": "Trained models, asked over HTTP."},
		"paths":      paths,
		"components": object{"schemas": object{"Error": schema(reflect.TypeFor[errorBody]())}},
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
	switch t.Kind() {
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
